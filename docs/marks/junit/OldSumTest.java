import static org.junit.Assert.assertTrue;

import org.junit.Test;

/** The same for JUnit 4. */
public class OldSumTest {
    @Test
    public void large() {
        double sum = 0;
        for (int i = 1; i <= 200_000_000; i++) sum += 1.0 / i;
        assertTrue(sum > 19);
    }
}
