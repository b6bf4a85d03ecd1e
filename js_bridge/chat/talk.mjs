/** The page of an exported language model: messages go in, answers come word by word. */

import { load } from "./player.mjs";
import { Conversation } from "./conversation.mjs";

/** @template {HTMLElement} T @param {string} id @param {new () => T} kind @returns {T} */
function element(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`index.html has no ${kind.name} #${id}`);
  return found;
}

const [log, status] = [element("log", HTMLElement), element("status", HTMLElement)];
const [text, send, begin] = [element("text", HTMLTextAreaElement), element("send", HTMLButtonElement), element("begin", HTMLButtonElement)];
const [temperature, topP] = [element("temperature", HTMLInputElement), element("top-p", HTMLInputElement)];
let isSaying = false;
let isStopped = false;

try {
  const facts = await (await fetch("tokenizer.json")).json();
  element("title", HTMLElement).textContent = document.title = facts.title;
  const conversation = new Conversation(await load("./", { progress: (done, all) => (status.textContent = `${done} of ${all} kernels are ready`) }), facts);
  const submit = () => {
    if (isSaying) isStopped = true;
    else if (text.value.trim() && temperature.reportValidity() && topP.reportValidity()) void say(conversation, text.value.trim());
  };
  element("say", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!isSaying) submit();
  });
  begin.addEventListener("click", () => {
    log.replaceChildren();
    conversation.begin();
    text.focus();
  });
  conversation.begin();
  work(false);
  status.textContent = "Ready";
} catch (error) {
  status.textContent = String(error);
}

/** @param {Conversation} conversation @param {string} message */
async function say(conversation, message) {
  append("user", message);
  const answer = append("assistant", "");
  text.value = "";
  work(true);
  status.textContent = "Reading …";
  const start = performance.now();
  try {
    const before = conversation.tokens;
    for await (const piece of conversation.reply(message, { temperature: temperature.valueAsNumber, topP: topP.valueAsNumber })) {
      answer.textContent += piece;
      log.scrollTop = log.scrollHeight;
      const count = conversation.tokens - before;
      status.textContent = `${count} tokens, ${((count * 1000) / (performance.now() - start)).toFixed(1)} tokens/s`;
      if (isStopped) break;
    }
  } catch (error) {
    status.textContent = error instanceof Error ? error.message : String(error);
  }
  work(false);
  text.focus();
}

/** @param {string} role @param {string} words */
function append(role, words) {
  const paragraph = Object.assign(document.createElement("p"), { className: role, textContent: words });
  log.append(paragraph);
  log.scrollTop = log.scrollHeight;
  return paragraph;
}

/** @param {boolean} isNow */
function work(isNow) {
  isSaying = isNow;
  isStopped = false;
  send.textContent = isNow ? "Stop" : "Send";
  send.disabled = text.disabled = false;
  begin.disabled = isNow;
}
