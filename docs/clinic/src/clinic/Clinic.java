package clinic;

import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;

/** Owners, pets and visits, in memory. They are made up, and the same after each start. */
public final class Clinic {
    private static final String[] GIVEN = {"Ada", "Ben", "Carla", "David", "Emma", "Frank", "Grace", "Hugo", "Ines",
        "Jan", "Kira", "Leo", "Maria", "Nils", "Olga", "Paul", "Rosa", "Sam", "Tara", "Vera"};
    private static final String[] FAMILY = {"Baker", "Carter", "Davis", "Evans", "Fisher", "Gray", "Hill", "Jones",
        "King", "Lane", "Moore", "Nolan", "Owen", "Price", "Reed", "Stone", "Turner", "Vance", "Ward", "Young"};
    private static final String[] CITIES = {"Ashford", "Bramley", "Colne", "Dunmore", "Elland"};
    private static final String[] NAMES = {"Basil", "Coco", "Daisy", "Felix", "Lucky", "Max", "Rosy", "Tiger"};
    private static final String[] KINDS = {"bird", "cat", "dog", "hamster", "lizard"};
    private static final String[] REASONS = {"check", "vaccination", "teeth", "limping", "surgery"};
    private static final LocalDate FIRST_DAY = LocalDate.of(2024, 1, 1);
    private static final int DAYS = 730;
    private static final int VISITS_OF_A_PET = 4;

    private static final Clinic ONE = new Clinic();

    private final Map<Integer, Owner> owners = new TreeMap<>();
    private final Map<Integer, Pet> pets = new TreeMap<>();

    private Clinic() {
        Random random = new Random(1);
        for (String family : FAMILY) {
            for (String given : GIVEN) {
                String name = given + " " + family;
                Owner owner = new Owner(owners.size() + 1, name, one(CITIES, random), new ArrayList<>());
                owners.put(owner.id(), owner);
                int count = 1 + random.nextInt(2);
                for (int i = 0; i < count; i++) {
                    owner.pets().add(newPet(random));
                }
            }
        }
    }

    private Pet newPet(Random random) {
        Pet pet = new Pet(pets.size() + 1, one(NAMES, random), one(KINDS, random));
        pets.put(pet.id(), pet);
        for (int i = 0; i < VISITS_OF_A_PET; i++) {
            LocalDate day = FIRST_DAY.plusDays(random.nextInt(DAYS));
            String date = String.format("%02d/%02d/%d", day.getDayOfMonth(), day.getMonthValue(), day.getYear());
            pet.add(new Visit(pet, date, one(REASONS, random)));
        }
        return pet;
    }

    private static String one(String[] of, Random random) {
        return of[random.nextInt(of.length)];
    }

    public static Clinic get() {
        return ONE;
    }

    /** Owners with this part in their names: all, if it is empty. */
    public List<Owner> owners(String part) {
        String wanted = part.toLowerCase(Locale.ROOT);
        List<Owner> found = new ArrayList<>();
        for (Owner owner : owners.values()) {
            if (owner.name().toLowerCase(Locale.ROOT).contains(wanted)) {
                found.add(owner);
            }
        }
        return found;
    }

    public Optional<Owner> owner(int id) {
        return Optional.ofNullable(owners.get(id));
    }

    public Optional<Pet> pet(int id) {
        return Optional.ofNullable(pets.get(id));
    }

    /** Visits of all pets. */
    public List<Visit> visits() {
        List<Visit> visits = new ArrayList<>();
        for (Pet pet : pets.values()) {
            visits.addAll(pet.visits());
        }
        return visits;
    }
}
