// SPDX-License-Identifier: Apache-2.0

/** What the runtime is made for. */
module dasec.service {
    requires jdk.httpserver;
}
