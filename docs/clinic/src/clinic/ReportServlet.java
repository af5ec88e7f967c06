package clinic;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.PrintWriter;

/** Shows the report. */
public final class ReportServlet extends HttpServlet {
    private static final long serialVersionUID = 1;

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        Report report = new Report(Clinic.get().visits());
        PrintWriter out = Page.begin(response, "Report");
        out.print("<h2>Latest visits</h2>\n<ul>\n");
        for (Visit visit : report.latest()) {
            out.print("<li>" + visit.day() + ": " + Page.text(visit.pet().name()) + ", " + Page.text(visit.reason()));
            out.print("</li>\n");
        }
        out.print("</ul>\n<h2>Visits by month</h2>\n<ul>\n");
        report.months().forEach((month, kinds) -> {
            out.print("<li>" + month + ": " + Page.text(kinds.toString()) + "</li>\n");
        });
        out.print("</ul>\n");
        Page.end(out);
    }
}
