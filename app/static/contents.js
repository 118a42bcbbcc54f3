// The contents of a handbook page say which section one reads.
const contents = document.querySelector("[data-contents]");
const links = /** @type {HTMLAnchorElement[]} */ ([...contents.querySelectorAll("a")]);
const heads = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));

function mark() {
  const line = innerHeight / 3; // what has passed it is being read
  const isAtEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 2;
  let at = isAtEnd ? heads.length - 1 : heads.findLastIndex((head) => head.getBoundingClientRect().top < line);
  at = Math.max(0, at);
  links.forEach((link, index) => {
    if (index === at) link.setAttribute("aria-current", "location");
    else link.removeAttribute("aria-current");
  });
}

addEventListener("scroll", mark, { passive: true });
addEventListener("resize", mark);
mark();
