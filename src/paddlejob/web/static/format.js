// Numbers and times as people read them.

export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 120) return `${whole}s`;
  if (whole < 600) return `${Math.floor(whole / 60)}m${whole % 60}s`;
  if (whole < 7200) return `${Math.floor(whole / 60)}m`;
  if (whole < 172800) return `${Math.floor(whole / 3600)}h${Math.floor((whole % 3600) / 60)}m`;
  return `${Math.floor(whole / 86400)}d`;
}

export const now = () => Date.now() / 1000;

export function number(value) {
  if (typeof value !== "number") return String(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(3);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return String(Number(value.toPrecision(5)));
}

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export function clock(seconds) {
  const date = new Date(seconds * 1000);
  const pad = (value) => String(value).padStart(2, "0");
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  const today = new Date().toDateString() === date.toDateString();
  return today ? time : `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${time}`;
}
