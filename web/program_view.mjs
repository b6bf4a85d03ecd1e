/** CodeMirror for a program in Python. */

import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

/** @param {HTMLElement} parent @param {string} doc @param {string} label what it is called */
export function programView(parent, doc, label) {
  parent.replaceChildren();
  const keys = [...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, indentWithTab];
  const extensions = [
    lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(), highlightActiveLine(),
    indentUnit.of("    "), python(), syntaxHighlighting(classHighlighter), keymap.of(keys),
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
  ];
  return new EditorView({ parent, state: EditorState.create({ doc, extensions }) });
}
