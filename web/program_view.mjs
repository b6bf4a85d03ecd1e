/** CodeMirror for a program in Python. */

import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

/**
 * What a view begins with.
 * @param {string} doc @param {string} label what it is called @param {import("@codemirror/state").Extension[]} own these come before all others
 */
export function programState(doc, label, own = []) {
  const keys = [...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, indentWithTab];
  const extensions = [
    ...own,
    lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(), highlightActiveLine(),
    indentUnit.of("    "), python(), syntaxHighlighting(classHighlighter), keymap.of(keys),
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
  ];
  return EditorState.create({ doc, extensions });
}

/** A view in place of what an element holds. @param {HTMLElement} parent @param {EditorState} [state] */
export function programView(parent, state) {
  parent.replaceChildren();
  return new EditorView({ parent, state });
}
