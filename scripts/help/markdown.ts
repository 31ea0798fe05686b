// Markdown to HTML, for the part of Markdown that the pages in docs use: headings, paragraphs, lists, tables, code, links, bold and
// italics. A page with anything else is refused, so that none is shown wrong.
import { anchorsOf } from "../links.ts"

/** What a page's links lead to. */
export interface Targets {
  /** The address for a link, or `undefined` where the reader has no such file: the text stays without a link. */
  readonly link: (target: string) => string | undefined
}

export const escapeHtml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\"", "&quot;")

const plainText = (html: string): string => html.replaceAll(/<[^>]*>/g, "")

/** Bold and italics of a text that is escaped and has no code and no links. */
const emphasis = (text: string): string =>
  text.replaceAll(/\*\*([^*]+)\*\*/g, "<strong>$1</strong>").replaceAll(
    /(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])/g,
    "<em>$1</em>"
  )

const inline = (text: string, targets: Targets): string => {
  const held: Array<string> = []
  // A private character stands for what is done, so that nothing looks into it again.
  const hold = (html: string): string => `\uE000${held.push(html) - 1}\uE001`
  const done = escapeHtml(text)
    .replaceAll(/(`+)(.+?)\1/g, (_, __, code: string) => hold(`<code>${code.trim()}</code>`))
    .replaceAll(/!\[([^\]]*)\]\([^)]*\)/g, "")
    .replaceAll(/\[([^\]]+)\]\(([^)\s]+)\)/g, (_, label: string, target: string) => {
      const href = /^[a-z]+:/.test(target) ? target : targets.link(target)
      return href === undefined ? label : hold(`<a href="${escapeHtml(href)}">${emphasis(label)}</a>`)
    })
  let html = emphasis(done)
  // Held texts may have others in them, at most code in a link.
  while (html.includes("\uE000")) html = html.replaceAll(/\uE000(\d+)\uE001/g, (_, i: string) => held[Number(i)]!)
  return html
}

const cellsOf = (line: string): Array<string> =>
  line.trim().slice(1, -1).split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"))

const table = (lines: ReadonlyArray<string>, targets: Targets): string => {
  const [head = "", , ...rows] = lines
  const heads = cellsOf(head).map((cell) => `<th>${inline(cell, targets)}</th>`).join("")
  const seen = new Set<string>()
  const body = rows.map((row) => {
    const cells = cellsOf(row)
    // A row about one code or setting has its name as an address.
    const name = /^`([\w.-]+)`$/.exec(cells[0] ?? "")?.[1]
    const id = name === undefined || seen.has(name) ? "" : ` id="${name}"`
    if (name !== undefined) seen.add(name)
    return `<tr${id}>${cells.map((cell) => `<td>${inline(cell, targets)}</td>`).join("")}</tr>`
  })
  return `<div class="table"><table><thead><tr>${heads}</tr></thead><tbody>${body.join("")}</tbody></table></div>`
}

const item = /^( *)(-|\d+\.) +(.*)$/

/** The HTML of lines. `top` is the page itself, whose headings have addresses. */
const blocks = (lines: ReadonlyArray<string>, targets: Targets, anchors: Iterator<string>): string => {
  const html: Array<string> = []
  for (let i = 0; i < lines.length;) {
    const line = lines[i]!
    const take = (while_: (line: string) => boolean): Array<string> => {
      const taken: Array<string> = []
      while (i < lines.length && while_(lines[i]!)) taken.push(lines[i++]!)
      return taken
    }
    const heading = /^(#{1,6}) (.*)$/.exec(line)
    const start = item.exec(line)
    if (line.trim() === "" || /^<!--.*-->$/.test(line)) i++
    else if (heading !== null) {
      const level = heading[1]!.length
      html.push(`<h${level} id="${anchors.next().value}">${inline(heading[2]!, targets)}</h${level}>`)
      i++
    } else if (line.startsWith("```")) {
      i++
      const code = take((line) => !line.startsWith("```"))
      i++
      html.push(`<pre><code>${escapeHtml(code.join("\n"))}\n</code></pre>`)
    } else if (line.startsWith("    ")) {
      const code = take((line) => line.startsWith("    ") || line.trim() === "").map((line) => line.slice(4))
      html.push(`<pre><code>${escapeHtml(code.join("\n").trimEnd())}\n</code></pre>`)
    } else if (line.trim().startsWith("|")) html.push(table(take((line) => line.trim().startsWith("|")), targets))
    else if (start !== null) {
      const tag = start[2] === "-" ? "ul" : "ol"
      const from = tag === "ol" && start[2] !== "1." ? ` start="${start[2]!.slice(0, -1)}"` : ""
      const items: Array<string> = []
      while (i < lines.length) {
        const found = item.exec(lines[i]!)
        if (found === null || found[1]!.length !== start[1]!.length || (found[2] === "-") !== (tag === "ul")) break
        const indent = lines[i]!.length - found[3]!.length
        i++
        const rest = take((line) => line.startsWith("  ") && line.trim() !== "").map((line) =>
          line.slice(Math.min(indent, line.length - line.trimStart().length))
        )
        const own = blocks([found[3]!, ...rest], targets, anchors)
        items.push(`<li>${own.replace(/^<p>([^]*?)<\/p>/, "$1")}</li>`)
        // An empty line between items does not end a list.
        if (lines[i]?.trim() === "" && item.test(lines[i + 1] ?? "")) i++
      }
      html.push(`<${tag}${from}>${items.join("")}</${tag}>`)
    } else {
      const isText = (line: string) => line.trim() !== "" && !/^(?:```|#{1,6} |\||<!--)/.test(line) && !item.test(line)
      const text = take(isText).map((line) => line.trim()).join("\n")
      if (text === "") throw new Error(`this Markdown is not known: ${line}`)
      html.push(`<p>${inline(text, targets)}</p>`)
    }
  }
  return html.join("\n")
}

/** The HTML of a page's text. Throws where it has Markdown that is not known. */
export const renderMarkdown = (text: string, targets: Targets): string => {
  const html = blocks(text.split("\n"), targets, anchorsOf(text)[Symbol.iterator]())
  const left = /\*\*|```|\]\(|^&gt; |~~/m.exec(plainText(html.replaceAll(/<(pre|code)>[^]*?<\/\1>/g, "")))
  if (left !== null) throw new Error(`this Markdown is not known: ${left[0]}`)
  return html
}
