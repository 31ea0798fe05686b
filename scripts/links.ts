// Finds broken links in the Markdown files: relative links to files or headings that do not exist. Links to other hosts are not followed.
import { existsSync, readdirSync, readFileSync } from "node:fs"
import path from "node:path"

/** A relative link of a Markdown file. */
export interface Link {
  readonly line: number
  /** As it is written. */
  readonly target: string
  /** The path of the file that it names, in the repository. */
  readonly file: string
  /** The heading that it names, as in an address. */
  readonly anchor: string | undefined
}

/** The Markdown files of `root` and `root`/docs, by their paths in `root`. */
export const markdownFiles = (root: string): Array<string> => {
  const docs = path.join(root, "docs")
  const inDocs = existsSync(docs) ? readdirSync(docs, { recursive: true, encoding: "utf8" }) : []
  return [...readdirSync(root), ...inDocs.map((file) => path.join("docs", file))]
    .filter((file) => file.endsWith(".md")).map((file) => file.replaceAll(path.sep, "/"))
}

/** The lines outside of code blocks, with empty ones in place of the blocks. */
const linesOf = (text: string): Array<string> => {
  let fenced = false
  return text.split("\n").map((line) => {
    const isFence = /^\s*(```|~~~)/.test(line)
    if (isFence) fenced = !fenced
    return isFence || fenced ? "" : line
  })
}

/** The relative links of a Markdown file, from its path in the repository and its text. */
export const linksOf = (file: string, text: string): Array<Link> =>
  linesOf(text).flatMap((line, i) =>
    [...line.replaceAll(/`[^`]*`/g, "").matchAll(/\]\(([^)\s]+)[^)]*\)/g)].flatMap(([, target = ""]) => {
      if (/^[a-z]+:/i.test(target)) return []
      const [place = "", anchor] = decodeURI(target).replace(/\?.*$/, "").split("#", 2)
      const linked = place === "" ? file : path.posix.join(path.posix.dirname(file), place)
      return [{ line: i + 1, target, file: linked, anchor }]
    })
  )

/** The names by which links reach the headings of a text, as GitHub makes them. */
export const anchorsOf = (text: string): ReadonlySet<string> => {
  const seen = new Map<string, number>()
  return new Set(
    linesOf(text).flatMap((line) => {
      const heading = /^#{1,6} (.*)$/.exec(line)?.[1]
      if (heading === undefined) return []
      const name = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase().trim()
        .replaceAll(/[^\p{L}\p{N}\p{M}_\- ]/gu, "").replaceAll(" ", "-")
      const before = seen.get(name) ?? 0
      seen.set(name, before + 1)
      return [before === 0 ? name : `${name}-${before}`]
    })
  )
}

/** The broken links of the Markdown files in `root` and `root`/docs, as `file:line: reason`. */
export const brokenLinks = (root: string): Array<string> =>
  markdownFiles(root).flatMap((file) =>
    linksOf(file, readFileSync(path.join(root, file), "utf8")).flatMap(({ anchor, file: linked, line, target }) => {
      const place = path.join(root, linked)
      if (!existsSync(place)) return [`${file}:${line}: no such file: ${target}`]
      if (anchor === undefined || !linked.endsWith(".md")) return []
      return anchorsOf(readFileSync(place, "utf8")).has(anchor) ? [] : [`${file}:${line}: no such heading: ${target}`]
    })
  )
