// Markdown to HTML, for the pages in docs. A page with what their style sheet does not show is refused, so that none is shown wrong.
import { Marked, type Tokens } from "marked"
import { anchorsOf } from "../links.ts"

/** What a page's links lead to. */
export interface Targets {
  /** The address for a link, or `undefined` where the reader has no such file: the text stays without a link. */
  readonly link: (target: string) => string | undefined
}

export const escapeHtml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\"", "&quot;")

const refuse = ({ raw }: { readonly raw: string }): never => {
  throw new Error(`this Markdown is not known: ${raw.slice(0, 100)}`)
}

/** The HTML of a page's text. Throws where it has Markdown that is not known. */
export const renderMarkdown = (text: string, targets: Targets): string => {
  const anchors = anchorsOf(text)[Symbol.iterator]()
  const marked = new Marked({
    renderer: {
      heading({ depth, tokens }) {
        return `<h${depth} id="${anchors.next().value}">${this.parser.parseInline(tokens)}</h${depth}>\n`
      },
      code: ({ text }) => `<pre><code>${escapeHtml(text.trimEnd())}\n</code></pre>\n`,
      table({ header, rows }) {
        const cellsOf = (tag: "td" | "th", cells: ReadonlyArray<Tokens.TableCell>): string =>
          cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join("")
        const seen = new Set<string>()
        const body = rows.map((row) => {
          // A row about one code or setting has its name as an address.
          const name = /^`([\w.-]+)`$/.exec(row[0]?.text ?? "")?.[1]
          const id = name === undefined || seen.has(name) ? "" : ` id="${name}"`
          if (name !== undefined) seen.add(name)
          return `<tr${id}>${cellsOf("td", row)}</tr>`
        })
        const head = `<thead><tr>${cellsOf("th", header)}</tr></thead>`
        return `<div class="table"><table>${head}<tbody>${body.join("")}</tbody></table></div>\n`
      },
      link({ href, tokens }) {
        const label = this.parser.parseInline(tokens)
        const to = /^[a-z]+:/.test(href) ? href : targets.link(href)
        return to === undefined ? label : `<a href="${escapeHtml(to)}">${label}</a>`
      },
      image: () => "",
      html: (token) => /^<!--[^]*-->\s*$/.test(token.text) ? "" : refuse(token),
      blockquote: refuse,
      checkbox: refuse,
      del: refuse,
      hr: refuse
    }
  })
  const html = marked.parse(text, { async: false })
  const plain = html.replaceAll(/<(pre|code)>[^]*?<\/\1>|<[^>]*>/g, "")
  const left = plain.search(/\*\*|\]\(/)
  return left === -1 ? html : refuse({ raw: plain.slice(left) })
}
