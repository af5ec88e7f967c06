import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestSource;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;

/**
 * Makes each JUnit 5 test a phase of joular-bpf run, named Class.method. JUnit finds it by META-INF/services. Without
 * joular-bpf it does nothing.
 */
public final class EnergyListener implements TestExecutionListener {
    /** joular-bpf takes names of up to 256 bytes. */
    private static final int LONGEST_NAME = 200;

    private final FileOutputStream pipe = open(System.getenv("JOULAR_MARKS_PIPE"));

    private static FileOutputStream open(String path) {
        try {
            return path == null ? null : new FileOutputStream(path);
        } catch (IOException e) {
            return null;
        }
    }

    @Override
    public void executionStarted(TestIdentifier test) {
        say("begin ", test);
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        say("end ", test);
    }

    /** One write per mark, so that marks of tests that run in parallel do not mix. */
    private void say(String mark, TestIdentifier test) {
        if (pipe == null || !test.isTest()) return;
        try {
            pipe.write((mark + name(test) + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (IOException e) {
            // joular-bpf has ended: the tests go on.
        }
    }

    /** Repetitions and parameters of a method have the same name, so they add up. */
    private static String name(TestIdentifier test) {
        Optional<TestSource> source = test.getSource();
        String name = test.getDisplayName();
        if (source.isPresent() && source.get() instanceof MethodSource) {
            MethodSource method = (MethodSource) source.get();
            name = method.getClassName() + "." + method.getMethodName();
        }
        name = name.replaceAll("[^\\x21-\\x7e]|/", "_");
        return name.substring(Math.max(0, name.length() - LONGEST_NAME));
    }
}
