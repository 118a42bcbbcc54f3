// The editor of programs, in place of a text field that goes on holding the text.
import {
  bracketMatching,
  closeBrackets,
  defaultKeymap,
  drawSelection,
  EditorState,
  EditorView,
  HighlightStyle,
  highlightActiveLine,
  highlightActiveLineGutter,
  history,
  historyKeymap,
  indentLess,
  indentMore,
  indentOnInput,
  indentUnit,
  keymap,
  lineNumbers,
  python,
  syntaxHighlighting,
  tags,
} from "./vendor/codemirror/codemirror-6.43.15.esm.js";

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword], color: "var(--accent)" },
  { tag: [tags.string, tags.docString], color: "var(--good)" },
  { tag: tags.comment, color: "var(--ink-3)", fontStyle: "italic" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--warn)" },
  { tag: tags.definition(tags.function(tags.variableName)), fontWeight: "600" },
]);

const look = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "transparent", fontSize: "var(--text-sm)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "1.6", minHeight: "24rem", maxHeight: "70vh" },
  ".cm-content": { caretColor: "var(--ink)", padding: "var(--s3) 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { color: "var(--ink-3)", backgroundColor: "transparent", border: "none" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--hover) 55%, transparent)" },
  ".cm-activeLineGutter": { color: "var(--ink)", backgroundColor: "transparent" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--accent) 25%, transparent)",
  },
  ".cm-matchingBracket": { backgroundColor: "var(--accent-wash) !important", outline: "1px solid var(--accent)" },
  ".cm-changedLine, .cm-insertedLine": { backgroundColor: "var(--good-wash) !important" },
  ".cm-deletedChunk": { backgroundColor: "var(--bad-wash) !important" },
  ".cm-changedText": { background: "none !important" },
  ".cm-changeGutter": { width: "3px" },
});

/**
 * The editor that stands before `field`, in `host`. Control and Enter do what `keys` say, by the editor's names of them.
 * @param {HTMLElement} host
 * @param {HTMLTextAreaElement} field
 * @param {{ key: string, run: () => boolean, preventDefault?: boolean }[]} keys
 * @param {() => void} typed
 * @param {any[]} [extensions]
 */
export function makeEditor(host, field, keys, typed, extensions = []) {
  // The editor brings its own style sheets. Our policy refuses style elements; a shadow root takes sheets without them.
  const shadow = host.attachShadow({ mode: "open" });
  // Tab indents; after Escape it leaves (the editor itself passes the next Tab on).
  const bound = [...keys, { key: "Tab", run: indentMore, shift: indentLess }];
  const editor = new EditorView({
    doc: field.value,
    root: shadow,
    parent: shadow,
    extensions: [
      keymap.of([...bound, ...historyKeymap, ...defaultKeymap]),
      [lineNumbers(), highlightActiveLineGutter(), highlightActiveLine(), history(), drawSelection()],
      [indentUnit.of("    "), EditorState.tabSize.of(4), indentOnInput(), bracketMatching(), closeBrackets(), python()],
      [syntaxHighlighting(colours), look, extensions],
      EditorView.contentAttributes.of({
        "aria-label": "Your program. Escape, then Tab, leaves the editor.",
        tabindex: "0",
      }),
      EditorView.updateListener.of((update) => {
        if (!update.docChanged) return;
        field.value = editor.state.doc.toString();
        typed();
      }),
    ],
  });
  host.hidden = false;
  field.hidden = true;
  // outside, what comes out of a shadow root does not look like typing: a letter must not lead to another room
  host.addEventListener("keydown", (event) => event.stopPropagation());
  return editor;
}

/** Put the cursor on a line, in sight. @param {InstanceType<typeof EditorView>} editor @param {number} number */
export function goToLine(editor, number) {
  const line = editor.state.doc.line(Math.min(number, editor.state.doc.lines));
  editor.dispatch({ selection: { anchor: line.from }, effects: EditorView.scrollIntoView(line.from, { y: "center" }) });
  editor.focus();
}
