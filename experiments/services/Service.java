// SPDX-License-Identifier: Apache-2.0

package dasec.service;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The same service as service.go: it looks entries up in memory, groups and sorts them, and answers JSON.
 * Every request allocates, so the collector works beside the requests; so does the compiler, as long as
 * code becomes hot. It takes requests of others once it has answered WARM of its own.
 *
 * <p>Service ADDRESS PORT THREADS ENTRIES PICKED WARM
 */
public final class Service {
    private static final int GROUPS = 8;
    private static final int WORDS = 4;
    private static final String LENGTH = "content-length: ";

    private record Entry(String name, String group, int price, String[] words) {}

    private final Map<Integer, Entry> entries = new HashMap<>();
    private final int picked;

    private Service(int count, int picked) {
        this.picked = picked;
        Random chance = new Random(1); // the same entries each time
        for (int number = 0; number < count; number++) {
            String[] words = new String[WORDS];
            for (int index = 0; index < WORDS; index++) {
                words[index] = "word-" + chance.nextInt(1_000_000);
            }
            String group = "group-" + chance.nextInt(GROUPS);
            entries.put(number, new Entry("entry-" + number, group, chance.nextInt(100_000), words));
        }
    }

    /** The entries of this key by group, the cheapest first. */
    private Map<String, List<Entry>> grouped(int key) {
        Random chance = new Random(key);
        Map<String, List<Entry>> found = new TreeMap<>();
        for (int count = 0; count < picked; count++) {
            Entry one = entries.get(chance.nextInt(entries.size()));
            found.computeIfAbsent(one.group(), group -> new ArrayList<>()).add(one);
        }
        found.values().forEach(group -> group.sort(Comparator.comparingInt(Entry::price)));
        return found;
    }

    private static String json(Map<String, List<Entry>> groups) {
        StringBuilder text = new StringBuilder("{");
        String between = "";
        for (Map.Entry<String, List<Entry>> group : groups.entrySet()) {
            text.append(between).append('"').append(group.getKey()).append("\":[");
            String comma = "";
            for (Entry one : group.getValue()) {
                text.append(comma).append("{\"name\":\"").append(one.name()).append("\",\"price\":");
                text.append(one.price()).append(",\"words\":[\"");
                text.append(String.join("\",\"", one.words())).append("\"]}");
                comma = ",";
            }
            text.append(']');
            between = ",";
        }
        return text.append('}').toString();
    }

    private void answer(HttpExchange exchange) throws IOException {
        try (exchange) {
            int key = Integer.parseInt(exchange.getRequestURI().getPath().substring(1));
            byte[] body = json(grouped(key)).getBytes(StandardCharsets.US_ASCII);
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
        }
    }

    /** Asks so often for something, as whoever takes a service into use does: what is hot is compiled then. */
    private static void warm(int port, int requests) throws IOException {
        byte[] buffer = new byte[1 << 16];
        try (Socket line = new Socket(InetAddress.getLoopbackAddress(), port)) {
            for (int key = 0; key < requests; key++) {
                String asked = "GET /" + key + " HTTP/1.1\r\nHost: s\r\n\r\n";
                line.getOutputStream().write(asked.getBytes(StandardCharsets.US_ASCII));
                skipAnswer(line.getInputStream(), buffer);
            }
        }
    }

    /** Headers end with an empty line, and name the length of what follows. */
    private static void skipAnswer(InputStream input, byte[] buffer) throws IOException {
        int got = 0;
        for (int left = 1; left > 0; ) {
            int more = input.read(buffer, got, buffer.length - got);
            if (more < 0) {
                throw new IOException("ended while it warmed up");
            }
            got += more;
            String text = new String(buffer, 0, got, StandardCharsets.US_ASCII).toLowerCase(Locale.ROOT);
            int end = text.indexOf("\r\n\r\n");
            int length = text.indexOf(LENGTH);
            if (end > 0) {
                int until = text.indexOf("\r\n", length);
                left = Integer.parseInt(text.substring(length + LENGTH.length(), until)) + end + 4 - got;
            }
        }
    }

    private static HttpServer serving(String address, int port, Service service, Executor pool)
            throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress(address, port), 0);
        server.createContext("/", service::answer);
        server.setExecutor(pool);
        server.start();
        return server;
    }

    public static void main(String[] words) throws IOException {
        int threads = Integer.parseInt(words[2]);
        Service service = new Service(Integer.parseInt(words[3]), Integer.parseInt(words[4]));
        AtomicInteger made = new AtomicInteger();
        ThreadPoolExecutor pool =
                new ThreadPoolExecutor(
                        threads,
                        threads,
                        0,
                        TimeUnit.SECONDS,
                        new LinkedBlockingQueue<>(),
                        task -> new Thread(task, "serve-" + made.getAndIncrement()));
        pool.prestartAllCoreThreads(); // whoever measures counts them before the first request
        HttpServer before = serving("127.0.0.1", 0, service, pool);
        warm(before.getAddress().getPort(), Integer.parseInt(words[5]));
        before.stop(0);
        serving(words[0], Integer.parseInt(words[1]), service, pool);
    }
}
