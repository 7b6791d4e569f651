#!/bin/sh
# A command beside GluonCV's exported models, which it finds where EXPORTED says: COMMAND, and what that is told.
EXPORTED=$(dirname "$(dirname "$(readlink -f "$0")")")
export EXPORTED
exec "$@"
