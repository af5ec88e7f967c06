package clinic;

import java.time.LocalDate;
import java.time.format.DateTimeFormatter;

/** A visit of a pet, as the reception noted it. */
public final class Visit {
    private static final DateTimeFormatter NOTED = DateTimeFormatter.ofPattern("dd/MM/yyyy");

    private final Pet pet;
    private final LocalDate day;
    private final String reason;

    /** The reception writes dates as 05/03/2026. */
    public Visit(Pet pet, String date, String reason) {
        this.pet = pet;
        this.day = LocalDate.parse(date, NOTED);
        this.reason = reason;
    }

    public Pet pet() {
        return pet;
    }

    public LocalDate day() {
        return day;
    }

    public String reason() {
        return reason;
    }
}
