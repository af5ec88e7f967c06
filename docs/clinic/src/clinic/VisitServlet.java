package clinic;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.PrintWriter;
import java.time.DateTimeException;
import java.time.LocalDate;
import java.util.Optional;

/** Adds a visit. */
public final class VisitServlet extends HttpServlet {
    private static final long serialVersionUID = 1;
    /** Characters of a reason. */
    private static final int LONGEST = 200;

    @Override
    protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
        Optional<Pet> pet = Clinic.get().pet(Page.number(request, "pet"));
        String reason = Page.value(request, "reason");
        if (pet.isEmpty() || reason.length() > LONGEST) {
            response.sendError(HttpServletResponse.SC_BAD_REQUEST, "There is no such pet, or the reason is too long.");
            return;
        }
        LocalDate day;
        try {
            Visit visit = new Visit(pet.get(), Page.value(request, "date"), reason);
            day = visit.day();
            pet.get().add(visit);
        } catch (DateTimeException e) {
            response.sendError(HttpServletResponse.SC_BAD_REQUEST, "Write the date as 05/03/2026.");
            return;
        }
        PrintWriter out = Page.begin(response, "Visit added");
        out.print("<p>" + Page.text(pet.get().name()) + " comes on " + day + ".</p>\n");
        Page.end(out);
    }
}
