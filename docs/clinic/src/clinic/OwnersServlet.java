package clinic;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.PrintWriter;

/** Lists owners, with a search by name. */
public final class OwnersServlet extends HttpServlet {
    private static final long serialVersionUID = 1;

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String name = Page.value(request, "name");
        PrintWriter out = Page.begin(response, "Owners");
        out.print("<form action=\"owners\"><input name=\"name\" value=\"" + Page.text(name) + "\">");
        out.print("<button>Search</button></form>\n<ul>\n");
        for (Owner owner : Clinic.get().owners(name)) {
            out.print("<li><a href=\"owner?id=" + owner.id() + "\">" + Page.text(owner.name()) + "</a>, ");
            out.print(Page.text(owner.city()) + ", pets: " + owner.pets().size() + "</li>\n");
        }
        out.print("</ul>\n");
        Page.end(out);
    }
}
