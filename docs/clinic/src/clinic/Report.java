package clinic;

import java.time.YearMonth;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;

/** What the clinic did: its latest visits, and how many pets of each kind came in each month. */
public final class Report {
    private static final int LATEST = 10;

    private final List<Visit> latest;
    private final SortedMap<YearMonth, SortedMap<String, Integer>> months = new TreeMap<>();

    public Report(List<Visit> visits) {
        List<Visit> sorted = new ArrayList<>(visits);
        sorted.sort(Comparator.comparing(Visit::day).reversed());
        latest = sorted.subList(0, Math.min(LATEST, sorted.size()));
        for (Visit visit : sorted) {
            months.computeIfAbsent(YearMonth.from(visit.day()), month -> new TreeMap<>())
                .merge(visit.pet().kind(), 1, Integer::sum);
        }
    }

    public List<Visit> latest() {
        return latest;
    }

    public SortedMap<YearMonth, SortedMap<String, Integer>> months() {
        return months;
    }
}
