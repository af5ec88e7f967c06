package clinic;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;

/** A pet with its latest visits. */
public final class Pet {
    /** Older visits are forgotten, so that memory is bounded. */
    private static final int KEPT = 20;

    private final int id;
    private final String name;
    private final String kind;
    private final Deque<Visit> visits = new ArrayDeque<>();

    Pet(int id, String name, String kind) {
        this.id = id;
        this.name = name;
        this.kind = kind;
    }

    public int id() {
        return id;
    }

    public String name() {
        return name;
    }

    public String kind() {
        return kind;
    }

    public synchronized void add(Visit visit) {
        if (visits.size() == KEPT) {
            visits.removeFirst();
        }
        visits.addLast(visit);
    }

    public synchronized List<Visit> visits() {
        return List.copyOf(visits);
    }
}
