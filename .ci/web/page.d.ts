// What the scripts of a page find there that no import says.

/** What a selector finds is not typed: the template says what it is. */
interface ParentNode {
  querySelector(selectors: string): any;
  querySelectorAll(selectors: string): NodeListOf<any>;
}

/** htmx, loaded before every module. */
interface Window {
  htmx: { process(element: Element): void; ajax(verb: string, path: string, context: object): Promise<void> };
}
declare const htmx: Window["htmx"];
