import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;

/** Tests that differ in how much they compute. */
class SumTest {
    private static double harmonic(int terms) {
        double sum = 0;
        for (int i = 1; i <= terms; i++) sum += 1.0 / i;
        return sum;
    }

    @Test
    void large() { assertTrue(harmonic(400_000_000) > 20); }

    @RepeatedTest(2)
    void small() { assertTrue(harmonic(50_000_000) > 18); }
}
