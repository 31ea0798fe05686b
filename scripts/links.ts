// Finds broken links in the Markdown files: relative links to files that do not exist. Links to other hosts are not followed.
import { existsSync, readdirSync, readFileSync } from "node:fs"
import path from "node:path"

const markdownFiles = (root: string): Array<string> => {
  const docs = path.join(root, "docs")
  const inDocs = existsSync(docs) ? readdirSync(docs, { recursive: true, encoding: "utf8" }) : []
  return [...readdirSync(root), ...inDocs.map((file) => path.join("docs", file))].filter((file) => file.endsWith(".md"))
}

/** The broken links of the Markdown files in `root` and `root`/docs, as `file:line: reason`. */
export const brokenLinks = (root: string): Array<string> => {
  const broken: Array<string> = []
  for (const file of markdownFiles(root)) {
    let fenced = false
    for (const [index, line] of readFileSync(path.join(root, file), "utf8").split("\n").entries()) {
      if (/^\s*(```|~~~)/.test(line)) fenced = !fenced
      if (fenced) continue
      for (const [, target = ""] of line.replaceAll(/`[^`]*`/g, "").matchAll(/\]\(([^)\s]+)[^)]*\)/g)) {
        const relative = decodeURI(target.replace(/[?#].*$/, ""))
        if (relative === "" || /^[a-z]+:/i.test(relative)) continue
        if (!existsSync(path.join(root, path.dirname(file), relative))) {
          broken.push(`${file}:${index + 1}: no such file: ${target}`)
        }
      }
    }
  }
  return broken
}
