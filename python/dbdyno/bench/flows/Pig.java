// Apache Pig as a process that stays, for dbdyno's bench of data flows: worker.py has the protocol. Started as a source
// file by Java 17 with Pig's jars on its class path. A script stores into '$out' and reads '$data/NAME.csv'.

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Stream;
import org.apache.pig.ExecType;
import org.apache.pig.PigServer;
import org.apache.pig.backend.executionengine.ExecJob;

/** One Pig in local mode. */
final class Pig {
    private static final String RULES_OFF = "pig.optimizer.rules.disabled";
    private static final Map<String, String> FOLDERS = new HashMap<>();
    private static Path scratch;
    private static int runs;

    private Pig() {}

    public static void main(String[] words) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // what Pig prints is no answer
        scratch = Path.of(words[0]);
        System.setProperty("java.io.tmpdir", words[0]);
        out.println("hello\t" + packed("Pig " + version()));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String said;
            try {
                said = answer(line.split("\t", -1), words[1]);
            } catch (Exception error) {
                Throwable cause = error;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                said = "failed\t" + packed(String.valueOf(cause.getMessage()));
            }
            out.println(said);
        }
        System.exit(0);
    }

    /** Of the jar, whose manifest names none. */
    private static String version() {
        String place = PigServer.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        return place.substring(place.lastIndexOf('/') + 1).replaceAll("^pig-|\\.jar$", "");
    }

    private static String answer(String[] words, String rules) throws Exception {
        if (words[0].equals("tables")) {
            FOLDERS.put(words[1], text(words[2]));
            return "ok";
        }
        Path into = scratch.resolve("out" + runs++);
        Properties settings = new Properties();
        settings.setProperty("hadoop.tmp.dir", scratch.resolve("hadoop").toString());
        settings.setProperty("pig.temp.dir", scratch.resolve("temp").toString());
        if (words[2].equals("off")) {
            settings.setProperty(RULES_OFF, rules);
        }
        Map<String, String> given = new HashMap<>();
        given.put("data", FOLDERS.get(words[1]));
        given.put("out", into.toString());
        byte[] script = text(words[3]).getBytes(StandardCharsets.UTF_8);
        long used = cpu();
        long began = System.nanoTime();
        PigServer pig = new PigServer(ExecType.LOCAL, settings);
        try {
            pig.setBatchOn();
            pig.registerScript(new ByteArrayInputStream(script), given);
            for (ExecJob job : pig.executeBatch()) {
                if (job.getStatus() == ExecJob.JOB_STATUS.FAILED) {
                    throw new IOException("a job of it failed", job.getException());
                }
            }
        } finally {
            pig.shutdown();
        }
        long elapsed = System.nanoTime() - began;
        long cpu = cpu() - used;
        String rows = rows(into);
        remove(into);
        return "ok\t" + elapsed + "\t" + cpu + "\t" + packed(rows);
    }

    /** What was stored, as JSON: a list of lists of texts. */
    private static String rows(Path folder) throws IOException {
        List<String> lines = new ArrayList<>();
        try (Stream<Path> files = Files.list(folder)) {
            for (Path one : files.filter(path -> path.getFileName().toString().startsWith("part-")).sorted().toList()) {
                lines.addAll(Files.readAllLines(one));
            }
        }
        StringBuilder json = new StringBuilder("[");
        for (String line : lines) {
            json.append(json.length() > 1 ? "," : "").append("[\"");
            json.append(line.replace("\\", "\\\\").replace("\"", "\\\"").replace("\t", "\",\"")).append("\"]");
        }
        return json.append("]").toString();
    }

    private static void remove(Path folder) throws IOException {
        try (Stream<Path> all = Files.walk(folder)) {
            for (Path one : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(one);
            }
        }
    }

    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }

    private static String text(String word) {
        return new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
    }

    private static String packed(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
