// What the pages use of the bundle, for the type checker: its own types are spread over ten packages.
export const EditorState: any, EditorView: any, Compartment: any, HighlightStyle: any, keymap: any, tags: any;
export const indentUnit: any;
export const indentLess: any, indentMore: any;
export const defaultKeymap: any[], historyKeymap: any[];
export function bracketMatching(): any;
export function closeBrackets(): any;
export function drawSelection(): any;
export function highlightActiveLine(): any;
export function highlightActiveLineGutter(): any;
export function history(): any;
export function indentOnInput(): any;
export function lineNumbers(): any;
export function python(): any;
export function syntaxHighlighting(style: any): any;
export function unifiedMergeView(choice: object): any;
