import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** Marks the phases of a program for joular-bpf run. Without it, marks cost nothing. */
public final class Marks {
    private static final FileOutputStream PIPE = open(System.getenv("JOULAR_MARKS_PIPE"));

    private static FileOutputStream open(String path) {
        try {
            return path == null ? null : new FileOutputStream(path);
        } catch (IOException e) {
            return null;
        }
    }

    /** One write per mark, so that marks of several threads do not mix. */
    private static void say(String mark) {
        if (PIPE != null) {
            try {
                PIPE.write((mark + "\n").getBytes(StandardCharsets.UTF_8));
            } catch (IOException e) {
                // joular-bpf has ended: the program goes on.
            }
        }
    }

    static void begin(String name) { say("begin " + name); }
    static void end(String name) { say("end " + name); }
    static void event(String name, String attributes) { say("event " + name + " " + attributes); }

    public static void main(String[] arguments) {
        begin("load");
        double sum = 0;
        for (int i = 1; i < 20_000_000; i++) sum += 1.0 / i;
        end("load");
        event("loaded", "sum=" + sum);
    }
}
