package clinic;

import java.util.List;

/** Who brings pets. */
public record Owner(int id, String name, String city, List<Pet> pets) {
}
