package clinic;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.PrintWriter;

/** Writes pages of HTML, and reads what forms send. */
final class Page {
    private Page() {
    }

    static PrintWriter begin(HttpServletResponse response, String title) throws IOException {
        response.setContentType("text/html; charset=UTF-8");
        PrintWriter out = response.getWriter();
        out.print("<!DOCTYPE html>\n<html lang=\"en\"><head><title>" + text(title) + "</title></head><body>\n");
        out.print("<p><a href=\"owners\">Owners</a> <a href=\"report\">Report</a></p>\n<h1>" + text(title) + "</h1>\n");
        return out;
    }

    static void end(PrintWriter out) {
        out.print("</body></html>\n");
    }

    /** A text as HTML shows it. */
    static String text(String raw) {
        return raw.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\"", "&quot;");
    }

    /** A value of the form; empty if it is missing. */
    static String value(HttpServletRequest request, String name) {
        String value = request.getParameter(name);
        return value == null ? "" : value;
    }

    /** A number of the form; 0, which nothing has, if it is missing or no number. */
    static int number(HttpServletRequest request, String name) {
        try {
            return Integer.parseInt(value(request, name));
        } catch (NumberFormatException e) {
            return 0;
        }
    }
}
