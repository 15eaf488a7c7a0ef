//! What is put in comes out under ZooKeeper's names, as it writes them.

use std::time::Duration;

use quorate_metrics::{Detail, Figures, Summary};

fn some() -> Figures {
    let (mut elections, at) = (Summary::default(), Duration::from_secs(5));
    elections.observe(at, 4);
    elections.observe_time(at, Duration::from_micros(5_900));
    let mut figures = Figures::default();
    figures.summary("election_time", Detail::Basic, &elections.spread(at));
    figures.summary("fsynctime", Detail::Basic, &Summary::default().spread(at));
    figures.summary("readlatency", Detail::Advanced, &elections.spread(at));
    figures.counter("looking_count", 2_u64);
    figures.gauge("quorum_size", 3_usize);
    figures.gauge("avg_latency", 0.0);
    figures.text("server_state", "leader");
    figures.own_counter("clients_ahead", "clients that knew more", 7_u64);
    figures.on_page("quorate_state", "what it is", &[("state", "leading")], true);
    figures.on_page("quorate_state", "what it is", &[("state", "lo\"ok\\ing\n")], false);
    figures
}

/// `mntr` of ZooKeeper 3.9.5: names, order of kinds, decimals.
#[test]
fn words_are_lines_of_zookeepers_mntr() {
    let expected = "zk_server_state\tleader\nzk_quorum_size\t3\nzk_avg_latency\t0.0\n\
         zk_looking_count\t2\nzk_clients_ahead\t7\n\
         zk_avg_election_time\t4.5\nzk_min_election_time\t4\nzk_max_election_time\t5\n\
         zk_cnt_election_time\t2\nzk_sum_election_time\t9\n\
         zk_avg_fsynctime\t0.0\nzk_min_fsynctime\t0\nzk_max_fsynctime\t0\nzk_cnt_fsynctime\t0\n\
         zk_sum_fsynctime\t0\n\
         zk_avg_readlatency\t4.5\nzk_min_readlatency\t4\nzk_max_readlatency\t5\n\
         zk_cnt_readlatency\t2\nzk_sum_readlatency\t9\nzk_p50_readlatency\t4\n\
         zk_p95_readlatency\t5\nzk_p99_readlatency\t5\nzk_p999_readlatency\t5\n";
    assert_eq!(some().words(), expected);
}

/// As `PrometheusMetricsProvider` of ZooKeeper 3.9 writes them, but for a comma before the brace.
#[test]
fn the_page_is_what_zookeepers_provider_writes() {
    let expected = "# HELP election_time election_time\n# TYPE election_time summary\n\
         election_time{quantile=\"0.5\"} 4.0\nelection_time_count 2.0\nelection_time_sum 9.0\n\
         # HELP fsynctime fsynctime\n# TYPE fsynctime summary\n\
         fsynctime{quantile=\"0.5\"} NaN\nfsynctime_count 0.0\nfsynctime_sum 0.0\n\
         # HELP readlatency readlatency\n# TYPE readlatency summary\n\
         readlatency{quantile=\"0.5\"} 4.0\nreadlatency{quantile=\"0.9\"} 5.0\n\
         readlatency{quantile=\"0.99\"} 5.0\nreadlatency_count 2.0\nreadlatency_sum 9.0\n\
         # HELP looking_count looking_count\n# TYPE looking_count counter\nlooking_count 2.0\n\
         # HELP quorum_size quorum_size\n# TYPE quorum_size gauge\nquorum_size 3.0\n\
         # HELP avg_latency avg_latency\n# TYPE avg_latency gauge\navg_latency 0.0\n\
         # HELP quorate_clients_ahead_total clients that knew more\n\
         # TYPE quorate_clients_ahead_total counter\nquorate_clients_ahead_total 7.0\n\
         # HELP quorate_state what it is\n# TYPE quorate_state gauge\n\
         quorate_state{state=\"leading\"} 1.0\nquorate_state{state=\"lo\\\"ok\\\\ing\\n\"} 0.0\n";
    assert_eq!(some().page(&[]), expected);
}

#[test]
fn only_the_families_that_are_asked_for_are_on_the_page() {
    let page = some().page(&["quorum_size", "nonsense"]);
    assert_eq!(page, "# HELP quorum_size quorum_size\n# TYPE quorum_size gauge\nquorum_size 3.0\n");
}

#[test]
fn a_text_stays_in_its_line_and_a_name_that_is_none_is_not_on_the_page() {
    let mut figures = Figures::default();
    figures.text("version", "a\nzk_forged\t1\r\n");
    figures.gauge("a b", 1_u64);
    figures.gauge("1_gauge", 1_u64);
    assert!(figures.words().starts_with("zk_version\ta zk_forged\t1  \n"));
    let mut helped = Figures::default();
    helped.on_page("quorate_a", "one\nquorate_b 1.0\\", &[], true);
    let page = helped.page(&[]);
    assert!(page.starts_with("# HELP quorate_a one\\nquorate_b 1.0\\\\\n# TYPE"), "{page}");
    assert_eq!(figures.page(&[]), "");
}

#[test]
fn a_family_with_keys_has_a_summary_for_each() {
    let (mut acks, at) = (Summary::default(), Duration::from_secs(5));
    acks.observe(at, 4);
    let mut figures = Figures::default();
    figures.summary_of("ack_latency", Detail::Basic, "1", &acks.spread(at));
    figures.summary_of("ack_latency", Detail::Basic, "2", &Summary::default().spread(at));
    let expected = "# HELP ack_latency ack_latency\n# TYPE ack_latency summary\n\
         ack_latency{key=\"1\",quantile=\"0.5\"} 4.0\nack_latency_count{key=\"1\"} 1.0\n\
         ack_latency_sum{key=\"1\"} 4.0\n\
         ack_latency{key=\"2\",quantile=\"0.5\"} NaN\nack_latency_count{key=\"2\"} 0.0\n\
         ack_latency_sum{key=\"2\"} 0.0\n";
    assert_eq!(figures.page(&[]), expected);
    assert!(figures.words().starts_with("zk_avg_1_ack_latency\t4.0\n"), "{}", figures.words());
    assert!(figures.words().contains("zk_cnt_2_ack_latency\t0\n"));
}

#[test]
fn what_is_told_in_seconds_is_on_the_page_alone() {
    let (mut phases, at) = (Summary::default(), Duration::from_secs(5));
    phases.observe(at, 500_000);
    phases.observe(at, 500_000);
    let mut figures = Figures::default();
    let (name, help) = ("quorate_phase_seconds", "how long");
    figures.seconds_on_page(name, help, &[("phase", "a")], &Summary::default().spread(at));
    figures.seconds_on_page(name, help, &[("phase", "b")], &phases.spread(at));
    figures.counted_on_page("quorate_refused_total", "refusals", &[("reason", "limit")], 2_u64);
    let page = figures.page(&[]);
    let expected = "# HELP quorate_phase_seconds how long\n# TYPE quorate_phase_seconds summary\n\
         quorate_phase_seconds{phase=\"a\",quantile=\"0.5\"} NaN\n\
         quorate_phase_seconds_count{phase=\"a\"} 0.0\nquorate_phase_seconds_sum{phase=\"a\"} 0.0\n\
         quorate_phase_seconds{phase=\"b\",quantile=\"0.5\"} 0.5\n\
         quorate_phase_seconds_count{phase=\"b\"} 2.0\nquorate_phase_seconds_sum{phase=\"b\"} 1.0\n\
         # HELP quorate_refused_total refusals\n# TYPE quorate_refused_total counter\n\
         quorate_refused_total{reason=\"limit\"} 2.0\n";
    assert_eq!(page, expected);
    assert_eq!(figures.words(), "");
}

/// Who reads the page takes no family twice, and several parts of a server tell of one.
#[test]
fn a_family_is_on_the_page_once_whoever_tells_of_it() {
    let mut figures = Figures::default();
    figures.tls_failures("quorum", "dial", "expired", 2);
    figures.gauge("quorum_size", 3_u64);
    figures.tls_failures("client", "accept", "expired", 3);
    let mut others = Figures::default();
    others.tls_failures("http", "accept", "expired", 4);
    others.gauge("uptime", 5_u64);
    figures.append(others);
    let page = figures.page(&[]);
    let began = |line: &str| line.starts_with("# TYPE ");
    assert_eq!(page.lines().filter(|line| began(line)).count(), 3, "{page}");
    let told: Vec<_> = page.lines().filter(|line| line.starts_with("quorate_tls_")).collect();
    let told: Vec<_> = told.iter().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(told, ["2.0", "3.0", "4.0"], "{page}");
}

/// Two may have one name on the page, and one of them none in words.
#[test]
fn what_is_on_the_page_alone_is_no_word_of_the_figure_before_it() {
    let mut figures = Figures::default();
    figures.own_gauge("links", "how many", 3_u64);
    figures.on_page("quorate_links", "how many", &[("kind", "a")], 2_u64);
    assert_eq!(figures.words(), "zk_links\t3\n");
}
