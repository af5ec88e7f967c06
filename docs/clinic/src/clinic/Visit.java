package clinic;

import java.time.LocalDate;
import java.time.format.DateTimeFormatter;

/** A visit of a pet, as the reception noted it. */
public final class Visit {
    private final Pet pet;
    private final String date;
    private final String reason;

    /** The reception writes dates as 05/03/2026. */
    public Visit(Pet pet, String date, String reason) {
        this.pet = pet;
        this.date = date;
        this.reason = reason;
    }

    public Pet pet() {
        return pet;
    }

    public LocalDate day() {
        return LocalDate.parse(date, DateTimeFormatter.ofPattern("dd/MM/yyyy"));
    }

    public String reason() {
        return reason;
    }
}
