//! Instants as scripts write them: `2026-08-01T00:00:00Z`, optionally with milliseconds, or a step such as `+90s`.

/// Days since 1970-01-01 of a civil date (proleptic Gregorian).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// An instant or a step from `now_ms`.
pub fn parse(text: &str, now_ms: u64) -> u64 {
    match text.strip_prefix('+') {
        Some(step) => now_ms + duration(step),
        None => match text.strip_prefix('-') {
            Some(step) => now_ms - duration(step),
            None => instant(text),
        },
    }
}

pub fn duration(text: &str) -> u64 {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split].parse().unwrap();
    number
        * match &text[split..] {
            "ms" | "" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            other => panic!("{other:?} is no unit of time"),
        }
}

fn instant(text: &str) -> u64 {
    let text = text.strip_suffix('Z').unwrap_or_else(|| panic!("{text:?} is no instant"));
    let (date, time) = text.split_once('T').unwrap();
    let date: Vec<i64> = date.split('-').map(|part| part.parse().unwrap()).collect();
    let (time, ms) = time.split_once('.').unwrap_or((time, "0"));
    let time: Vec<i64> = time.split(':').map(|part| part.parse().unwrap()).collect();
    let seconds = days(date[0], date[1], date[2]) * 86_400 + time[0] * 3600 + time[1] * 60 + time[2];
    seconds as u64 * 1000 + ms.parse::<u64>().unwrap()
}

pub fn show(at_ms: u64) -> String {
    let seconds = (at_ms / 1000) as i64;
    let (year, month, day) = civil(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let ms = match at_ms % 1000 {
        0 => String::new(),
        ms => format!(".{ms:03}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{ms}Z")
}
