//! Says which columns a view has, how wide they are, and which have room.

use joular_data::{
    model::{domain::Label, units::MicroJoules},
    text::{figures, percent, share, watts},
};

use super::rows::{Row, View};

/// A name gets at least so many columns; others give way.
const NARROWEST_NAME: u16 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Id,
    /// Watts of the view's first figure: see [`Row::first`].
    First,
    /// Watts of the other one.
    Second,
    Share,
    Cpu,
    Joules,
    Name,
}

/// Which column rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    pub column: Column,
    pub is_reversed: bool,
}

impl Default for Sort {
    fn default() -> Self {
        Self { column: Column::First, is_reversed: false }
    }
}

/// What figures of rows are written with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Units {
    /// The time that rows are over.
    pub ns: u64,
    /// The energy that shares are of.
    pub whole: MicroJoules,
    pub label: Option<Label>,
}

impl Column {
    pub const fn of(view: View) -> &'static [Self] {
        match view {
            View::Processes | View::Threads => {
                &[Self::Id, Self::First, Self::Share, Self::Cpu, Self::Joules, Self::Name]
            }
            View::Methods | View::Branches => {
                &[Self::First, Self::Second, Self::Share, Self::Cpu, Self::Joules, Self::Name]
            }
        }
    }

    pub const fn heading(self, view: View) -> &'static str {
        match (self, view) {
            (Self::Id, View::Threads) => "TID",
            (Self::Id, _) => "PID",
            (Self::First, View::Methods) | (Self::Second, View::Branches) => "W SELF",
            (Self::First, View::Branches) | (Self::Second, _) => "W TOTAL",
            (Self::First, _) => "W",
            (Self::Share, _) => "%",
            (Self::Cpu, _) => "CPU %",
            (Self::Joules, View::Methods) => "J SELF",
            (Self::Joules, View::Branches) => "J TOTAL",
            (Self::Joules, _) => "J",
            (Self::Name, View::Processes) => "PROCESS",
            (Self::Name, View::Threads) => "THREAD",
            (Self::Name, View::Methods) => "METHOD",
            (Self::Name, View::Branches) => "BRANCH",
        }
    }

    const fn width(self) -> u16 {
        match self {
            Self::Id => 7,
            Self::First | Self::Second => 9,
            Self::Share => 6,
            Self::Cpu => 7,
            Self::Joules => 10,
            Self::Name => NARROWEST_NAME,
        }
    }

    /// The columns that have room, each with its first cell and its width. The name has what is left.
    pub fn shown(view: View, room: u16) -> Vec<(Self, u16, u16)> {
        let mut columns = Self::of(view).to_vec();
        let taken = |columns: &[Self]| columns.iter().map(|column| column.width() + 1).sum::<u16>().saturating_sub(1);
        for least in [Self::Joules, Self::Cpu, Self::Second, Self::Id, Self::Share, Self::First] {
            if taken(&columns) > room {
                columns.retain(|column| *column != least);
            }
        }
        let name = NARROWEST_NAME.saturating_add(room.saturating_sub(taken(&columns))).min(room);
        let mut at = 0;
        let place = |column: Self| {
            let width = if column == Self::Name { name } else { column.width() };
            let placed = (column, at, width);
            at += width + 1;
            placed
        };
        columns.into_iter().map(place).collect()
    }

    /// A row's figure in this column; empty for the name, whose text depends on its width.
    pub fn figure(self, row: &Row, units: &Units) -> String {
        let power = |energy| figures::figure(watts(energy, units.ns), units.label);
        match self {
            Self::Id => row.id.map(|id| id.to_string()).unwrap_or_default(),
            Self::First => power(row.first.energy),
            Self::Second => power(row.second.energy),
            Self::Share => format!("{:.1}", share(row.first.energy, units.whole)),
            Self::Cpu => format!("{:.1}", percent(row.first.cpu_ns, units.ns)),
            Self::Joules => figures::figure(row.since.joules(), units.label),
            Self::Name => String::new(),
        }
    }
}

impl Sort {
    /// Sorts by the next column of a view, or by the one before.
    pub fn step(&mut self, view: View, is_next: bool) {
        let columns = Column::of(view);
        let at = columns.iter().position(|column| *column == self.column).unwrap_or(0);
        let step = if is_next { 1 } else { columns.len() - 1 };
        if let Some(column) = columns.get((at + step) % columns.len()) {
            *self = Self { column: *column, is_reversed: false };
        }
    }

    /// Sorts by this column, or the other way round if it is sorted by it already.
    pub fn by(&mut self, column: Column) {
        *self = Self { column, is_reversed: self.column == column && !self.is_reversed };
    }

    /// Sorts figures from the largest on, names and ids from the first on; equal ones by name and id.
    pub fn sort(self, rows: &mut [Row]) {
        rows.sort_by(|a, b| {
            let order = match self.column {
                Column::Id => a.id.cmp(&b.id),
                Column::First | Column::Share => b.first.cmp(&a.first),
                Column::Second => b.second.cmp(&a.second),
                Column::Cpu => b.first.cpu_ns.cmp(&a.first.cpu_ns),
                Column::Joules => b.since.cmp(&a.since),
                Column::Name => a.name.cmp(&b.name),
            };
            let order = if self.is_reversed { order.reverse() } else { order };
            order.then_with(|| b.since.cmp(&a.since)).then_with(|| a.name.cmp(&b.name)).then_with(|| a.id.cmp(&b.id))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{super::sums::Amount, *};

    #[test]
    fn columns_give_way_to_the_name() {
        let shown = |view, room| Column::shown(view, room).into_iter().map(|(column, ..)| column).collect::<Vec<_>>();
        assert_eq!(shown(View::Methods, 80), Column::of(View::Methods));
        assert_eq!(shown(View::Methods, 60), [Column::First, Column::Second, Column::Share, Column::Cpu, Column::Name]);
        assert_eq!(shown(View::Methods, 40), [Column::First, Column::Share, Column::Name]);
        assert_eq!(shown(View::Processes, 40), [Column::First, Column::Share, Column::Name]);
        assert_eq!(shown(View::Branches, 10), [Column::Name]);
        for room in 0..300 {
            let placed = Column::shown(View::Processes, room);
            assert_eq!(placed.last().map(|(_, at, width)| at + width), Some(room));
        }
    }

    #[test]
    fn sorting_goes_through_all_columns_and_both_ways() {
        let mut sort = Sort::default();
        for column in [Column::Second, Column::Share, Column::Cpu, Column::Joules, Column::Name, Column::First] {
            sort.step(View::Methods, true);
            assert_eq!(sort.column, column);
        }
        sort.step(View::Methods, false);
        assert_eq!(sort.column, Column::Name);
        sort.by(Column::Name);
        assert!(sort.is_reversed);
        sort.by(Column::Cpu);
        assert!(!sort.is_reversed);
    }

    #[test]
    fn rows_are_sorted_by_a_column_and_equal_ones_by_name() {
        let row = |name: &str, energy: u64, cpu_ns: u64, id: u32| Row {
            first: Amount { energy: MicroJoules(energy), cpu_ns },
            id: Some(id),
            ..Row::named(name.to_owned())
        };
        for (column, expected, reversed) in [
            (Column::First, "cba", "abc"),
            (Column::Cpu, "abc", "bca"),
            (Column::Name, "abc", "cba"),
            (Column::Id, "bca", "acb"),
            (Column::Second, "abc", "abc"),
        ] {
            let mut rows = [row("a", 1, 9, 3), row("b", 2, 5, 1), row("c", 3, 5, 2)];
            for (is_reversed, expected) in [(false, expected), (true, reversed)] {
                Sort { column, is_reversed }.sort(&mut rows);
                assert_eq!(rows.iter().map(|row| row.name.as_str()).collect::<String>(), expected, "{column:?}");
            }
        }
    }

    #[test]
    fn figures_have_the_digits_that_their_label_deserves() {
        let first = Amount { energy: MicroJoules(1_234_567), cpu_ns: 500_000_000 };
        let row = Row { first, since: MicroJoules(9_876_543), id: Some(7), ..Row::named("a".to_owned()) };
        let units = |label| Units { ns: 1_000_000_000, whole: MicroJoules(2_469_134), label: Some(label) };
        let of = |column: Column, label| column.figure(&row, &units(label));
        assert_eq!(
            (of(Column::First, Label::Modelled), of(Column::First, Label::Measured)),
            ("1.23".into(), "1.235".into())
        );
        assert_eq!(
            (of(Column::Share, Label::Modelled), of(Column::Cpu, Label::Modelled)),
            ("50.0".into(), "50.0".into())
        );
        assert_eq!((of(Column::Joules, Label::Modelled), of(Column::Id, Label::Modelled)), ("9.88".into(), "7".into()));
        assert_eq!(Column::First.figure(&row, &Units::default()), "0.000");
    }
}
