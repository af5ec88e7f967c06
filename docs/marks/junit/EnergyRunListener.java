import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Result;
import org.junit.runner.notification.RunListener;

/**
 * Makes each JUnit 4 test a phase of joular-bpf run, named Class.method. Add it to the JUnitCore that runs the tests, or
 * start tests with it: java … EnergyRunListener CLASS…. Without joular-bpf it does nothing.
 */
public final class EnergyRunListener extends RunListener {
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
    public void testStarted(Description test) {
        say("begin ", test);
    }

    @Override
    public void testFinished(Description test) {
        say("end ", test);
    }

    /** One write per mark, so that marks of tests that run in parallel do not mix. */
    private void say(String mark, Description test) {
        if (pipe == null) return;
        String name = (test.getClassName() + "." + test.getMethodName()).replaceAll("[^\\x21-\\x7e]|/", "_");
        name = name.substring(Math.max(0, name.length() - LONGEST_NAME));
        try {
            pipe.write((mark + name + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (IOException e) {
            // joular-bpf has ended: the tests go on.
        }
    }

    public static void main(String[] classes) throws ClassNotFoundException {
        JUnitCore core = new JUnitCore();
        core.addListener(new EnergyRunListener());
        Class<?>[] tests = new Class<?>[classes.length];
        for (int i = 0; i < classes.length; i++) tests[i] = Class.forName(classes[i]);
        Result result = core.run(tests);
        System.out.println(result.getRunCount() + " tests, " + result.getFailureCount() + " failures");
        System.exit(result.wasSuccessful() ? 0 : 1);
    }
}
