package clinic;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.Optional;

/** Shows an owner with pets and visits, and a form for another visit. */
public final class OwnerServlet extends HttpServlet {
    private static final long serialVersionUID = 1;

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        Optional<Owner> owner = Clinic.get().owner(Page.number(request, "id"));
        if (owner.isEmpty()) {
            response.sendError(HttpServletResponse.SC_NOT_FOUND, "There is no such owner.");
            return;
        }
        PrintWriter out = Page.begin(response, owner.get().name());
        out.print("<p>" + Page.text(owner.get().city()) + "</p>\n");
        for (Pet pet : owner.get().pets()) {
            out.print("<h2>" + Page.text(pet.name()) + ", " + Page.text(pet.kind()) + "</h2>\n<ul>\n");
            for (Visit visit : pet.visits()) {
                out.print("<li>" + visit.day() + ": " + Page.text(visit.reason()) + "</li>\n");
            }
            out.print("</ul>\n<form action=\"visits\" method=\"post\"><input type=\"hidden\" name=\"pet\" value=\"");
            out.print(pet.id() + "\"><input name=\"date\" placeholder=\"dd/mm/yyyy\"><input name=\"reason\">");
            out.print("<button>Add a visit</button></form>\n");
        }
        Page.end(out);
    }
}
