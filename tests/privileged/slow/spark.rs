//! Tests stacks of Spark SQL, which takes most of a minute to start.

use anyhow::Result;
use joular_tests::servers::Program;

use crate::beside::servers::expect_whole;

#[test]
fn stacks_of_spark_sql_are_whole() -> Result<()> {
    expect_whole(Program::SparkSql)
}
