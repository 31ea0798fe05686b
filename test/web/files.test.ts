import { assert, beforeAll, describe, it } from "@effect/vitest"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { buildConsole, firstLoadLimit } from "../../scripts/console.ts"

const folder = path.join(mkdtempSync(path.join(tmpdir(), "console-")), "console")
let size = 0
let files: Array<string> = []

beforeAll(async () => {
  size = await buildConsole(folder)
  files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.includes("."))
  return () => rmSync(path.dirname(folder), { recursive: true })
})

const text = (file: string): string => readFileSync(path.join(folder, file), "utf8")
const plain = (): Array<string> => files.filter((file) => !/\.(?:br|gz)$/.test(file))

describe("the console's files", () => {
  it("the first load is within its size limit", () => {
    assert.isAbove(size, 0)
    assert.isAtMost(size, firstLoadLimit)
    const first = [...text("index.html").matchAll(/(?:src|href)="([^"]+)"/g)].map(([, name]) => name!)
    assert.isAbove(first.length, 2)
    const loaded = ["index.html", ...first].reduce(
      (sum, name) => sum + readFileSync(path.join(folder, `${name}.gz`)).length,
      0
    )
    assert.strictEqual(loaded, size)
  })

  it("all names except index.html contain a hash of the content", () => {
    for (const file of plain()) assert.match(file, /^index\.html$|^assets\/[\w.]+-[\w-]{8,}\.(?:js|css|svg)$/)
  })

  it("each file has a gzip and a Brotli form", () => {
    for (const file of plain()) {
      assert.strictEqual(gunzipSync(readFileSync(path.join(folder, `${file}.gz`))).toString(), text(file))
      assert.strictEqual(brotliDecompressSync(readFileSync(path.join(folder, `${file}.br`))).toString(), text(file))
    }
  })

  it("addresses are relative, and the page complies with its content security policy", () => {
    const page = text("index.html")
    for (const [, address] of page.matchAll(/(?:src|href)="([^"]+)"/g)) assert.match(address!, /^assets\/[^/]+$/)
    assert.notMatch(page, /<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=|data:/)
    for (const file of plain()) {
      for (const [, name] of text(file).matchAll(/(?:^|[;}])import(?:[\w$*{},\s]+?from)?\s*["']([^"']+)["']/g)) {
        assert.match(name!, /^\.\/[^/]+$/, file)
      }
      for (const [, name] of text(file).matchAll(/(?<![.\w])import\(\s*(?:["'`]([^"'`]*))?/g)) {
        assert.match(name ?? "", /^\.\/[^/]+$/, file)
      }
      assert.notMatch(text(file), /["'`]\/(?:admin|v1|v1beta|console|msgcompat)\/?["'`]/, file)
      if (file.endsWith(".css")) assert.notMatch(text(file), /url\(|@import/, file)
    }
  })
})
