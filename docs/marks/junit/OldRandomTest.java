import static org.junit.Assert.assertNotEquals;

import org.junit.Test;

/** The same for JUnit 4. */
public class OldRandomTest {
    @Test
    public void large() { assertNotEquals(0, RandomTest.random(200_000_000)); }
}
