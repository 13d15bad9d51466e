//! `runs list --host`, `runs show` with what is usual, and `runs compare`, on stores of recorded journals.

use muster::domain::ids::RunId;

use super::*;

/// Puts a recorded journal into a store as a run of its own.
async fn again(store: &Store, name: &str) -> RunId {
    let mut records = histories::read(&histories::current().join(format!("{name}.jsonl"))).into_iter();
    let Body::Journal(Event::Submitted { request, .. }) = records.next().unwrap().body else { panic!("{name}") };
    let run = RunId(uuid::Uuid::now_v7());
    assert_eq!(store.submit(run, *request).await.unwrap(), Submit::Accepted);
    store.append(run, 1, records.map(|record| (record.at, record.body)).collect()).await.unwrap();
    run
}

/// Proves: G16
#[tokio::test]
async fn what_is_usual_is_told_beside_what_a_run_took() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let first = again(&store, "fresh").await;
    again(&store, "fresh").await;
    let show = |run: RunId, json: bool| {
        let run = run.to_string();
        let line: &[&str] = if json { &["runs", "show", &run, "--json"] } else { &["runs", "show", &run] };
        on(folder.path(), line)
    };
    while store.learn().await.unwrap() > 0 {}
    let two = show(first, false);
    assert_eq!((two.code(), two.stdout.contains("usually")), (Some(0), false), "two runs say nothing: {two}");
    again(&store, "fresh").await;
    while store.learn().await.unwrap() > 0 {}
    let three = show(first, false);
    assert!(three.stdout.contains("usually"), "{three}");
    let told = show(first, true);
    let usual = told.events().into_iter().find(|event| event["event"] == "usual").expect("one object with it");
    let inspection = &usual["phases"]["inspection"];
    assert_eq!((&inspection["runs"], &inspection["longer_than_usual"]), (&3.into(), &false.into()), "{usual:#}");
    assert_eq!(inspection["took_s"], inspection["usually_s"], "{usual:#}");
    assert_eq!(usual["whole"]["runs"], 3, "{usual:#}");
    assert_eq!(told.events().last().unwrap()["event"], "finished", "{told}");

    let host = told.events()[0]["host"].as_str().unwrap().to_owned();
    again(&store, "miscabled").await;
    let listed = on(folder.path(), &["runs", "list", "--host", &host, "--json"]);
    assert_eq!(listed.events().len(), 3, "{listed}");
    assert!(listed.events().iter().all(|run| run["host"] == *host && run["attempts"].is_u64()), "{listed}");
    let none = on(folder.path(), &["runs", "list", "--host", "gpu-none"]);
    assert_eq!((none.code(), none.stdout.trim()), (Some(0), "no runs of 'gpu-none'"), "{none}");
}

/// Proves: G16
#[tokio::test]
async fn two_runs_are_compared_with_stable_fields_and_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let (good, bad) = (again(&store, "fresh").await.to_string(), again(&store, "miscabled").await.to_string());
    let compared = on(folder.path(), &["runs", "compare", &good, &bad]);
    assert_eq!((compared.code(), compared.stderr.as_str()), (Some(0), ""), "{compared}");
    for part in ["≠ differs  outcome", "1  succeeded", "2  failed", "CABLES_WRONG", "link guard: ", "> only 2   what"]
    {
        assert!(compared.stdout.contains(part), "'{part}': {compared}");
    }
    let told = on(folder.path(), &["runs", "compare", &good, &bad, "--json"]).events().remove(0);
    assert_eq!(told["event"], "compared");
    let topics: Vec<&str> =
        told["sections"].as_array().unwrap().iter().map(|section| section["topic"].as_str().unwrap()).collect();
    assert_eq!(topics, ["run", "phases", "failure", "inspection", "links", "changes"]);
    let rows = told["sections"][0]["rows"].as_array().unwrap();
    let outcome = rows.iter().find(|row| row["name"] == "outcome").unwrap();
    assert_eq!((&outcome["mark"], &outcome["right"]["bad"]), (&"differs".into(), &true.into()), "{outcome:#}");
    let itself = on(folder.path(), &["runs", "compare", &good, &good, "--json"]).events().remove(0);
    assert_eq!(itself["differing"], 0, "{itself:#}");
    let refused = on(folder.path(), &["runs", "compare", &good, "ffffffff"]);
    assert_eq!(refused.code(), Some(2), "{refused}");
    assert!(refused.stderr.contains("no run 'ffffffff'"), "{refused}");
}
