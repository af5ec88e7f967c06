"""What people see: tables with headings, frames of pandas and polars, charts."""

import os
import unittest

import joular
import pyarrow
from recorded import experiment, recorded

os.environ["MPLBACKEND"] = "Agg"

HOSTILE = "\x1b[2J\u202e<b>$x_{y}$"


class Tables(unittest.TestCase):
    def setUp(self):
        self.data = joular.load(recorded("two_jvms"))

    def test_have_a_title_and_headings_and_the_main_class(self):
        lines = str(self.data.processes()).splitlines()
        self.assertEqual(lines[0], "Processes: two_jvms, modelled")
        for heading in ("pid", "main_class", "joules", "watts", "modelled"):
            self.assertIn(heading, lines[1].split())
        self.assertTrue(all(" Hot " in line for line in lines[2:]) and len(lines) == 4, lines)
        many = self.data.table("windows").select(["window_start", "measured_joules"])
        self.assertNotIn("first", str(many).splitlines()[0])
        long = joular.Table(pyarrow.table({"a": list(range(30))}), "Long")
        self.assertEqual(
            (str(long).splitlines()[0], len(str(long).splitlines())), ("Long, the first 20 of 30 rows", 22)
        )

    def test_show_names_that_are_hostile_as_text(self):
        table = joular.Table(pyarrow.table({"name": [HOSTILE], "joules": [1.5]}), HOSTILE)
        self.assertTrue(all(line.isprintable() for line in str(table).splitlines()), str(table))
        self.assertNotIn("<b>", table._repr_html_())
        self.assertIn("&lt;b&gt;", table._repr_html_())

    def test_cut_parameters_and_packages_of_long_names(self):
        for name, shown in [
            ("Shop.sell(int)", "Shop.sell(int)"),
            (f"Shop.sell({'int, ' * 20})", "Shop.sell(…)"),
            (f"{'com.' * 20}acme.Shop.sell", f"…{('com.' * 20)[-45:]}acme.Shop.sell"),
            ("a();" * 20 + "b", f"…{('a();' * 20)[-58:]}b"),
        ]:
            self.assertIn(shown, str(joular.Table(pyarrow.table({"name": [name]}), "Names")).splitlines())

    def test_are_frames_of_pandas_and_polars_and_arrows(self):
        table = self.data.methods(per="all")
        pandas, polars = table.to_pandas(), table.to_polars()
        self.assertEqual(list(pandas.columns), table.columns)
        self.assertEqual(polars.columns, table.columns)
        self.assertEqual(polars["self_joules"].to_list(), list(pandas.self_joules))
        self.assertEqual(pyarrow.table(table), table.arrow)
        self.assertEqual(table.head(2).to_pylist(), table.to_pylist()[:2])

    def test_say_whether_a_model_computes_the_energy(self):
        for table in (
            self.data.processes(),
            self.data.threads(),
            self.data.methods(),
            self.data.branches(),
            self.data.power(),
            self.data.runs,
        ):
            self.assertTrue(all(row["modelled"] is True for row in table.to_pylist()), table)
            self.assertIn("modelled", table.title)


class Charts(unittest.TestCase):
    def setUp(self):
        self.data = joular.load(recorded("two_jvms"))
        import matplotlib.pyplot

        self.addCleanup(matplotlib.pyplot.close, "all")

    def drawn(self, ax):
        ax.figure.canvas.draw()
        return ax

    def test_of_power_is_as_high_as_what_was_used(self):
        ax = self.drawn(self.data.plot.power())
        self.assertEqual((ax.get_title(), ax.get_ylabel()), ("Power by process: two_jvms, modelled", "power (W)"))
        self.assertEqual([text.get_text() for text in ax.get_legend().get_texts()], ["Hot"])
        days = sum(bar.get_height() * bar.get_width() for bar in ax.patches)
        joules = sum(row["joules"] for row in self.data.processes().to_pylist())
        self.assertAlmostEqual(days * 86_400, joules, places=3)
        self.assertEqual(len(self.data.plot.power(every=3, top=0).patches), 3)

    def test_of_methods_has_intervals_as_bars_of_error(self):
        ax = self.drawn(self.data.plot.methods(top=3))
        self.assertIn("modelled", ax.get_title())
        self.assertIn("(J)", ax.get_xlabel())
        rows = self.data.methods(per="all", java=True).head(3).to_pylist()
        self.assertEqual([text.get_text() for text in ax.get_yticklabels()], [row["method"] for row in rows])
        [ends] = [line for line in ax.containers if hasattr(line, "has_xerr")]
        segments = ends.lines[2][0].get_segments()
        for segment, row in zip(segments, rows):
            self.assertAlmostEqual(segment[0][0], row["self_low_joules"])
            self.assertAlmostEqual(segment[1][0], row["self_high_joules"])

    def test_of_two_data_sets_has_both_by_recording(self):
        data = joular.load(experiment())
        ax = self.drawn(data.select(variant="old").plot.compare(data.select(variant="new"), top=4))
        self.assertEqual(len(ax.patches), 8)
        self.assertIn("per recording", ax.get_xlabel())
        legend = [text.get_text() for text in ax.get_legend().get_texts()]
        self.assertEqual(legend, ["experiment/old (1 recording)", "experiment/new (1 recording)"])

    def test_draws_into_given_axes_and_names_with_dollars(self):
        import matplotlib.pyplot

        from joular.plot import _bars

        _, ax = matplotlib.pyplot.subplots()
        self.assertIs(self.data.plot.methods(ax=ax), ax)
        _, ax = matplotlib.pyplot.subplots()
        _bars(ax, ["Shop$$Lambda.run$", "a_{"], [(1.0, 0.5, 2.0), (0.5, 0.5, 0.5)], 0.0, 0.8, None)
        self.drawn(ax)


if __name__ == "__main__":
    unittest.main()
