// The pages that a running gateway serves at /help: those of docs, the changelog and the security policy, as HTML and as Markdown.
import { readFileSync } from "node:fs"
import path from "node:path"
import type { HelpFile, HelpFiles } from "../../src/server/documents/helpFiles.ts"
import { anchorsOf, markdownFiles } from "../links.ts"
import { escapeHtml, renderMarkdown } from "./markdown.ts"

const root = path.join(import.meta.dirname, "../..")

/** The pages outside of docs. */
const beside = new Set(["CHANGELOG.md", "SECURITY.md"])

/** Not served: a gateway would be larger by it, and the package has the declarations that it is made from. */
export const unserved = "docs/library/exports.md"

/** The name of a page below /help, by its path in the repository; `undefined` for a file that is no page. The README is the index. */
const nameOf = (file: string): string | undefined => {
  if (file === "README.md" || file === "README.zh.md") return "README"
  if (!file.endsWith(".md") || file === unserved) return undefined
  if (beside.has(file)) return file.slice(0, -".md".length)
  return file.startsWith("docs/") ? file.slice("docs/".length, -".md".length) : undefined
}

/** Where a link of a page leads, relative to it. `ending` belongs to the pages. */
const linkFrom = (file: string, ending: string) => (target: string): string | undefined => {
  const [place = "", anchor] = target.split("#", 2)
  const end = anchor === undefined ? "" : `#${anchor}`
  if (place === "") return end
  const name = nameOf(path.posix.join(path.posix.dirname(file), place))
  if (name === undefined) return undefined
  return `${path.posix.relative(path.posix.dirname(nameOf(file)!), name)}${ending}${end}`
}

/** A page around its content. `up` leads from its address to /help/. */
const around = (content: string, { language, title, up }: Record<"language" | "title" | "up", string>): string =>
  `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<link rel="stylesheet" href="${up}style.css">
</head>
<body>
<header><a href="${up === "" ? "./" : up}">Model Gateway</a>
<form action="${
    up === "" ? "./" : up
  }"><input type="search" name="q" aria-label="Search titles" placeholder="Search titles"></form></header>
<main>
${content}
</main>
</body>
</html>
`

/** The pages, by their names, and what goes with them. Throws if a page has Markdown that cannot be shown. */
export const makeHelp = (): HelpFiles => {
  const texts = markdownFiles(root).filter((file) => !file.startsWith("README.") && nameOf(file) !== undefined)
    .toSorted().map((file) => [file, readFileSync(path.join(root, file), "utf8")] as const)
  const pages = texts.map(([file, text]): HelpFile => {
    const name = nameOf(file)!
    const title = /^# (.*)$/m.exec(text)?.[1] ?? name
    const up = "../".repeat(name.split("/").length - 1)
    const html = renderMarkdown(text, { link: linkFrom(file, "") })
    const anchors = [...anchorsOf(text)]
    const headings = [...html.matchAll(/<h[2-4] id="[^"]*">([^]*?)<\/h[2-4]>/g)].map(([, heading = ""], i) =>
      [anchors[i + 1]!, heading.replaceAll(/<[^>]*>/g, "")] as const
    )
    const source = `<footer><a href="${path.posix.basename(name)}.md">Markdown</a></footer>`
    const markdown = text.replaceAll(/\]\(([^)\s:]+)\)/g, (link, target: string) => {
      const to = linkFrom(file, ".md")(target)
      return to === undefined ? link : `](${to})`
    })
    return {
      name,
      title,
      headings,
      html: around(`${html}\n${source}`, { language: name.endsWith(".zh") ? "zh" : "en", title, up }),
      markdown
    }
  })
  return {
    pages,
    style: readFileSync(path.join(import.meta.dirname, "style.css"), "utf8"),
    search: around("<h1>Search</h1>\n<!--found-->", { language: "en", title: "Search", up: "" })
  }
}
