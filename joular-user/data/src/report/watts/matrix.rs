//! Solves small symmetric systems: as many equations as there are groups of threads.

/// The inverse of a symmetric positive definite matrix, by Cholesky's factors; `None` if it is not positive definite
/// within rounding.
pub(super) fn inverse(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let factor = cholesky(matrix)?;
    let size = factor.len();
    let columns: Vec<Vec<f64>> = (0..size)
        .map(|column| {
            let unit: Vec<f64> = (0..size).map(|row| if row == column { 1.0 } else { 0.0 }).collect();
            solved(&factor, &unit)
        })
        .collect();
    Some(columns)
}

/// The solution of `matrix · x = right`, and the logarithm of the determinant.
pub(super) fn solve(matrix: &[Vec<f64>], right: &[f64]) -> Option<(Vec<f64>, f64)> {
    let factor = cholesky(matrix)?;
    let determinant: f64 = (0..factor.len()).map(|place| 2.0 * factor[place][place].ln()).sum();
    Some((solved(&factor, right), determinant))
}

pub(super) fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// The lower factor.
fn cholesky(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let mut factor: Vec<Vec<f64>> = Vec::with_capacity(matrix.len());
    for (place, row) in matrix.iter().enumerate() {
        let mut new = Vec::with_capacity(place + 1);
        for (column, value) in row.iter().enumerate().take(place) {
            let above = &factor[column];
            new.push((value - dot(&new, above)) / above[column]);
        }
        let left = row[place] - dot(&new, &new);
        // What is left of a dependent row is rounding.
        if left.is_nan() || left <= row[place].abs() * 1e-12 {
            return None;
        }
        new.push(left.sqrt());
        factor.push(new);
    }
    Some(factor)
}

fn solved(factor: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let size = factor.len();
    let mut solution: Vec<f64> = Vec::with_capacity(size);
    for (row, value) in factor.iter().zip(right) {
        let known = dot(&solution, row);
        solution.push((value - known) / row[solution.len()]);
    }
    for place in (0..size).rev() {
        let known: f64 = (place + 1..size).map(|below| factor[below][place] * solution[below]).sum();
        solution[place] = (solution[place] - known) / factor[place][place];
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_times_its_inverse_is_one() {
        let matrix = vec![vec![4.0, 2.0, 0.6], vec![2.0, 5.0, 1.0], vec![0.6, 1.0, 3.0]];
        let inverse = inverse(&matrix).unwrap();
        for (row, above) in matrix.iter().enumerate() {
            for (column, below) in inverse.iter().enumerate() {
                let expected = if row == column { 1.0 } else { 0.0 };
                assert!((dot(above, below) - expected).abs() < 1e-12);
            }
        }
        let (solution, determinant) = solve(&matrix, &[1.0, 2.0, 3.0]).unwrap();
        assert!((dot(&matrix[1], &solution) - 2.0).abs() < 1e-12);
        // By Sarrus.
        let expected: f64 = 4.0 * 5.0 * 3.0 + 2.0 * (2.0 * 1.0 * 0.6) - 0.6 * 5.0 * 0.6 - 4.0 - 3.0 * 2.0 * 2.0;
        assert!((determinant - expected.ln()).abs() < 1e-12);
    }

    #[test]
    fn rows_that_depend_on_each_other_have_no_solution() {
        assert!(inverse(&[vec![1.0, 2.0], vec![2.0, 4.0]]).is_none());
        assert!(solve(&[vec![0.0]], &[1.0]).is_none());
        assert!(solve(&[vec![f64::NAN]], &[1.0]).is_none());
    }
}
