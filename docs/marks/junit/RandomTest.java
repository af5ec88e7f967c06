import static org.junit.jupiter.api.Assertions.assertNotEquals;

import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;

/** Tests that differ in how much they compute. */
class RandomTest {
    /** Each step needs the one before, so that it takes as long however the loop is compiled. */
    static long random(int steps) {
        long state = 1;
        for (int i = 0; i < steps; i++) {
            state ^= state << 13;
            state ^= state >>> 7;
            state ^= state << 17;
        }
        return state;
    }

    @Test
    void large() { assertNotEquals(0, random(800_000_000)); }

    @RepeatedTest(2)
    void small() { assertNotEquals(0, random(100_000_000)); }
}
