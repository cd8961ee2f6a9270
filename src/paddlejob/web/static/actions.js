// Buttons that change a job. Each asks first, and names the command that does the same.

import { jobPath, post } from "./api.js";
import { h } from "./dom.js";
import { t } from "./i18n.js";

export function actionButtons(detail, done) {
  return detail.commands.map((command) =>
    h("button", { class: command.action === "delete" ? "danger" : "", "data-action": command.action, onclick: () => confirm(detail, command, done) }, t(command.action)),
  );
}

function confirm(detail, command, done) {
  const workers = command.action === "scale" ? h("input", { type: "number", min: 1, max: 100000, value: detail.workers, "aria-label": t("workers") }) : null;
  const shown = h("code", { class: "command" }, "");
  const tell = () => { shown.textContent = workers ? command.text.replace("WORKERS", workers.value || "WORKERS") : command.text; };
  const problem = h("p", { class: "notice warning", hidden: true });
  const go = h("button", { class: command.action === "delete" ? "danger primary" : "primary", "data-confirm": command.action }, t(command.action));
  const dialog = h(
    "dialog",
    { class: "confirm", "aria-label": t("confirm", t(command.action), detail.row.name) },
    h("h2", {}, t("confirm", t(command.action), detail.row.name)),
    h("p", {}, t(`about-${command.action}`)),
    workers ? h("label", {}, `${t("workers")} `, workers) : null,
    h("p", { class: "muted" }, t("sameCommand")),
    shown,
    problem,
    h("div", { class: "buttons" }, h("button", { onclick: () => dialog.close() }, t("cancel")), go),
  );
  if (workers) workers.addEventListener("input", tell);
  tell();
  go.addEventListener("click", async () => {
    go.disabled = true;
    try {
      const answer = await post(`${jobPath(detail.row)}/${command.action}`, workers ? { workers: Number(workers.value) } : {});
      dialog.close();
      done(answer.message, command.action);
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
      go.disabled = false;
    }
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
