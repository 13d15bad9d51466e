//! The tables, as a list of steps from the first version to this one. A step that was released is never edited.

use std::path::Path;

use rusqlite::Connection;

use super::error::StoreError;

/// Marks the file as muster's (`application_id`): "must" in ASCII.
const APPLICATION: i32 = 0x6d75_7374;

/// Step n brings a store of version n to version n + 1.
const STEPS: &[&str] = &[
    // 1: journal, fleet, proofs.
    "
    -- A run and what lists show of it. `finished_at` null: active, and then no other run has the device (G8).
    CREATE TABLE run (
        id           BLOB    PRIMARY KEY CHECK (length(id) = 16),
        netbox_id    INTEGER NOT NULL,
        host         TEXT    NOT NULL,
        site         TEXT    NOT NULL,
        workflow     TEXT    NOT NULL,
        submitted_by TEXT    NOT NULL,
        submitted_at INTEGER NOT NULL,
        retry_of     BLOB,
        status       TEXT    NOT NULL,
        phase        TEXT,
        waiting      TEXT,
        finished_at  INTEGER,
        failure      TEXT
    ) STRICT;
    CREATE UNIQUE INDEX run_one_active ON run (netbox_id) WHERE finished_at IS NULL;
    CREATE INDEX run_by_host ON run (host, submitted_at);

    -- The journal and the observations beside it, in one order a run. Times are nanoseconds since 1970.
    CREATE TABLE record (
        run      BLOB    NOT NULL,
        n        INTEGER NOT NULL,
        at       INTEGER NOT NULL,
        observed INTEGER NOT NULL CHECK (observed IN (0, 1)),
        body     TEXT    NOT NULL,
        PRIMARY KEY (run, n)
    ) STRICT, WITHOUT ROWID;

    -- NetBox's devices. `body` has no time of reading and no platform class: what is left changes only when NetBox does.
    CREATE TABLE device (
        netbox_id      INTEGER PRIMARY KEY,
        name           TEXT    NOT NULL,
        site           TEXT    NOT NULL,
        body           TEXT    NOT NULL,
        platform_class TEXT,
        read_at        INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX device_by_name ON device (name);

    -- Ironic's nodes, projected onto devices by name.
    CREATE TABLE ironic_ref (
        instance TEXT NOT NULL,
        device   TEXT NOT NULL,
        node     TEXT NOT NULL,
        body     TEXT NOT NULL,
        PRIMARY KEY (instance, device)
    ) STRICT, WITHOUT ROWID;

    -- One proof a device, for one reference. `netbox_id` is the device that had the name at that time.
    CREATE TABLE proof (
        device    TEXT PRIMARY KEY,
        netbox_id INTEGER,
        instance  TEXT    NOT NULL,
        node      TEXT    NOT NULL,
        run       BLOB    NOT NULL,
        at        INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    -- When each system was last heard, and what went wrong since.
    CREATE TABLE sync (
        key      TEXT PRIMARY KEY,
        ok_at    INTEGER,
        error    TEXT,
        error_at INTEGER
    ) STRICT, WITHOUT ROWID;

    -- Cursors and the like.
    CREATE TABLE meta (
        key   TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    ",
    // 2: what limits of rack and switch go by, and the run that a run of a batch waits for (G13).
    "
    ALTER TABLE run ADD COLUMN placement TEXT;
    ALTER TABLE run ADD COLUMN canary BLOB;
    ",
    // 3: what other processes follow and ask for.
    "
    -- One row for each append, in the order of the commits over all runs: a process that follows keeps its place in it.
    -- Nothing is ever taken out of it, so that the numbers only grow.
    CREATE TABLE appended (
        place   INTEGER PRIMARY KEY,
        run     BLOB    NOT NULL,
        n       INTEGER NOT NULL,
        records INTEGER NOT NULL
    ) STRICT;

    -- What a process that doesn't lead asks of the one that does. `answer` null: it is still to be carried out.
    CREATE TABLE command (
        id          INTEGER PRIMARY KEY AUTOINCREMENT,
        body        TEXT    NOT NULL,
        asked_at    INTEGER NOT NULL,
        taken_at    INTEGER,
        answered_at INTEGER,
        answer      TEXT
    ) STRICT;
    CREATE INDEX command_open ON command (id) WHERE answer IS NULL;
    ",
    // 4: what NetBox has besides devices.
    "
    -- Interfaces, addresses, cables, places, firmware policies. `owner`: the device of an interface, the interface of an
    -- address. `stamp`: when NetBox wrote it last.
    CREATE TABLE netbox_object (
        kind    TEXT    NOT NULL,
        id      INTEGER NOT NULL,
        owner   INTEGER,
        stamp   INTEGER,
        read_at INTEGER NOT NULL,
        body    TEXT    NOT NULL,
        PRIMARY KEY (kind, id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX netbox_object_by_owner ON netbox_object (kind, owner) WHERE owner IS NOT NULL;
    CREATE INDEX netbox_object_by_stamp ON netbox_object (kind, stamp);
    ",
    // 5: where records stand until there are many.
    "
    -- The newest records, in the order in which they were committed, those of all runs on the same few pages. What
    -- stands here is moved to `record`, where each run has pages of its own, many at a time.
    CREATE TABLE recent (
        place    INTEGER PRIMARY KEY,
        run      BLOB    NOT NULL,
        n        INTEGER NOT NULL,
        at       INTEGER NOT NULL,
        observed INTEGER NOT NULL CHECK (observed IN (0, 1)),
        body     TEXT    NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX recent_by_run ON recent (run, n);
    ",
    // 6: what inspections heard on the cables.
    "
    -- What the last inspection of a device heard on each of its frontend cables, and when it was.
    CREATE TABLE heard (
        netbox_id    INTEGER PRIMARY KEY,
        site         TEXT    NOT NULL,
        inspected_at INTEGER NOT NULL,
        body         TEXT    NOT NULL
    ) STRICT;
    CREATE INDEX heard_by_site ON heard (site, inspected_at);
    ",
    // 7: what phases and runs took, and the runs of a host.
    "
    -- One part (a phase, or 'run') of one run that succeeded in it; '' where a host has no class or type. Of each kind of
    -- hosts the latest stay.
    CREATE TABLE took (
        part    TEXT    NOT NULL,
        class   TEXT    NOT NULL,
        type    TEXT    NOT NULL,
        site    TEXT    NOT NULL,
        at      INTEGER NOT NULL,
        run     BLOB    NOT NULL,
        seconds INTEGER NOT NULL,
        PRIMARY KEY (part, class, type, site, at, run)
    ) STRICT, WITHOUT ROWID;

    -- `attempts`: the most that any phase took. `learned`: what the run took is in `took`. Of a store of before the latest
    -- thousand are learned from, one after the other, when a process leads.
    ALTER TABLE run ADD COLUMN attempts INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE run ADD COLUMN learned INTEGER NOT NULL DEFAULT 0;
    UPDATE run SET learned = 1 WHERE finished_at IS NOT NULL AND id NOT IN
        (SELECT id FROM run WHERE finished_at IS NOT NULL ORDER BY finished_at DESC LIMIT 1000);
    CREATE INDEX run_to_learn ON run (finished_at) WHERE finished_at IS NOT NULL AND learned = 0;
    CREATE INDEX run_by_device ON run (netbox_id, submitted_at);
    ",
    // 8: the fleet as lists read it.
    "
    -- The places of the walk, so that its beginning is found without reading the rest.
    CREATE INDEX device_by_place ON device (site, json_extract(body, '$.location'), json_extract(body, '$.rack'));

    -- Which of the fleet's changes (meta, 'fleet.changes') a device had last: of itself, its node or its proof. Who has
    -- read the fleet once reads only what has a later one.
    ALTER TABLE device ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX device_by_change ON device (changed);
    CREATE TABLE device_gone (
        netbox_id INTEGER PRIMARY KEY,
        changed   INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX ironic_ref_by_device ON ironic_ref (device);
    ",
];

/// Brings the store to this program's version. Each step is one transaction, so that a kill leaves a whole version.
pub(super) fn migrate(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    migrate_by(conn, path, STEPS)
}

fn migrate_by(conn: &Connection, path: &Path, steps: &[&str]) -> Result<(), StoreError> {
    let sqlite = |e: rusqlite::Error| StoreError::from_sqlite(path, &e);
    loop {
        // Another process may be opening the same store: the version is read again under the lock.
        conn.execute_batch("BEGIN IMMEDIATE").map_err(sqlite)?;
        let done = step(conn, path, steps);
        let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = conn.execute_batch(end).map_err(sqlite);
        if done? {
            return ended;
        }
        ended?;
    }
}

/// Takes one step in the open transaction; `true`: none was left to take.
fn step(conn: &Connection, path: &Path, steps: &[&str]) -> Result<bool, StoreError> {
    let sqlite = |e: rusqlite::Error| StoreError::from_sqlite(path, &e);
    let pragma = |name: &str| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(sqlite);
    let (version, application) = (pragma("user_version")?, pragma("application_id")?);
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(sqlite)?;
    if application != i64::from(APPLICATION) && (application != 0 || version != 0 || tables != 0) {
        let cause = "it is a database of another program".to_owned();
        return Err(StoreError::Damaged { path: path.to_owned(), cause });
    }
    let known = steps.len() as u32;
    let Some(version) = u32::try_from(version).ok().filter(|v| *v <= known) else {
        return Err(StoreError::Newer { path: path.to_owned(), found: version.max(0) as u32, known });
    };
    let Some(sql) = steps.get(version as usize) else { return Ok(true) };
    conn.execute_batch(sql).map_err(sqlite)?;
    conn.pragma_update(None, "application_id", APPLICATION).map_err(sqlite)?;
    conn.pragma_update(None, "user_version", version + 1).map_err(sqlite)?;
    tracing::info!(from = version, to = version + 1, "the store was brought to a newer version");
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: u32 = STEPS.len() as u32;

    fn path() -> &'static Path {
        Path::new("/state/muster.db")
    }

    fn version(conn: &Connection) -> i64 {
        conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_store_is_made_from_nothing_and_left_alone_when_it_is_of_this_version() {
        let conn = Connection::open_in_memory().unwrap();
        migrate(&conn, path()).unwrap();
        assert_eq!(version(&conn), i64::from(VERSION));
        migrate(&conn, path()).unwrap();
    }

    #[test]
    fn every_older_version_reaches_the_newest_with_its_rows() {
        let steps: Vec<&str> = STEPS.iter().copied().chain(["ALTER TABLE meta ADD COLUMN extra TEXT"]).collect();
        for from in 1..=STEPS.len() {
            let conn = Connection::open_in_memory().unwrap();
            migrate_by(&conn, path(), &steps[..from]).unwrap();
            conn.execute("INSERT INTO meta (key, value) VALUES ('kept', 'x')", []).unwrap();
            migrate_by(&conn, path(), &steps).unwrap();
            assert_eq!(version(&conn), steps.len() as i64);
            let kept: String = conn
                .query_row("SELECT value FROM meta WHERE key = 'kept' AND extra IS NULL", [], |r| r.get(0))
                .unwrap();
            assert_eq!(kept, "x");
        }
    }

    #[test]
    fn of_a_store_of_before_the_latest_runs_are_learned_from_and_the_others_left_alone() {
        let conn = Connection::open_in_memory().unwrap();
        migrate_by(&conn, path(), &STEPS[..6]).unwrap();
        for n in 0..1010u32 {
            conn.execute(
                "INSERT INTO run (id, netbox_id, host, site, workflow, submitted_by, submitted_at, status, finished_at)
                 VALUES (?1, ?2, 'h', 's', 'enroll', 'kim', 0, 'x', CASE WHEN ?2 < 1005 THEN ?2 END)",
                rusqlite::params![u128::from(n).to_be_bytes(), n],
            )
            .unwrap();
        }
        migrate(&conn, path()).unwrap();
        let count = |which: &str| -> i64 {
            conn.query_row(&format!("SELECT count(*) FROM run WHERE {which}"), [], |row| row.get(0)).unwrap()
        };
        assert_eq!(count("finished_at IS NOT NULL AND learned = 0"), 1000);
        assert_eq!(count("learned = 1 AND finished_at < 5"), 5);
        assert_eq!(count("attempts = 1"), 1010);
    }

    #[test]
    fn a_step_that_fails_leaves_the_former_version_whole() {
        let conn = Connection::open_in_memory().unwrap();
        let steps: Vec<&str> = STEPS.iter().copied().chain(["CREATE TABLE half (a INTEGER); nonsense"]).collect();
        assert!(migrate_by(&conn, path(), &steps).is_err());
        assert_eq!(version(&conn), i64::from(VERSION));
        assert!(conn.execute("INSERT INTO half VALUES (1)", []).is_err());
    }

    #[test]
    fn a_newer_store_and_a_foreign_database_are_refused() {
        let conn = Connection::open_in_memory().unwrap();
        migrate(&conn, path()).unwrap();
        conn.pragma_update(None, "user_version", VERSION + 6).unwrap();
        let error = migrate(&conn, path()).unwrap_err();
        assert_eq!(error, StoreError::Newer { path: path().into(), found: VERSION + 6, known: VERSION });
        assert!(error.to_string().contains("--state-dir"), "{error}");

        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE theirs (a)").unwrap();
        assert!(matches!(migrate(&conn, path()).unwrap_err(), StoreError::Damaged { .. }));
    }
}
