// SPDX-License-Identifier: Apache-2.0

package dasec.service;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The same service as service.go: it looks entries up in memory, groups and sorts them, and answers JSON.
 * Every request allocates, so the collector works beside the requests; so does the compiler, as long as
 * code becomes hot.
 *
 * <p>Service ADDRESS PORT THREADS ENTRIES PICKED
 */
public final class Service {
    private static final int GROUPS = 8;
    private static final int WORDS = 4;

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
        HttpServer server = HttpServer.create(new InetSocketAddress(words[0], Integer.parseInt(words[1])), 0);
        server.createContext("/", service::answer);
        server.setExecutor(pool);
        server.start();
    }
}
