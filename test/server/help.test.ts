/** `/help`: the pages of the running version, as HTML and as Markdown, and their list. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import path from "node:path"
import { renderMarkdown } from "../../scripts/help/markdown.ts"
import { unserved } from "../../scripts/help/pages.ts"
import { anchorsOf } from "../../scripts/links.ts"
import { errorTable } from "../../src/domain/GatewayError.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { pages, pageText } from "../support/snippets.ts"

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

const read = async (place: string) => {
  const response = await fetch(gateway.url + place, { redirect: "manual" })
  return {
    status: response.status,
    type: response.headers.get("content-type"),
    headers: response.headers,
    text: await response.text()
  }
}

const names = () =>
  pages().filter((page) => page !== "README.md" && page !== unserved).map((page) =>
    page.slice("docs/".length, -".md".length)
  )

describe("/help", () => {
  it("serves every page as HTML and as Markdown, whose links lead to pages and headings that it serves", async () => {
    const known = new Map<string, ReadonlySet<string>>()
    const texts = new Map<string, string>()
    for (const name of [...names(), "CHANGELOG", "SECURITY"]) {
      const file = name === "CHANGELOG" || name === "SECURITY" ? `${name}.md` : `docs/${name}.md`
      const html = await read(`/help/${name}`)
      const markdown = await read(`/help/${name}.md`)
      assert.deepEqual([html.status, html.type, markdown.status, markdown.type], [
        200,
        "text/html; charset=utf-8",
        200,
        "text/markdown; charset=utf-8"
      ], name)
      assert.strictEqual(markdown.text.split("\n")[0], pageText(file).split("\n")[0])
      known.set(name, new Set([...html.text.matchAll(/ id="([^"]+)"/g)].map(([, id = ""]) => id)))
      texts.set(name, html.text)
      for (const anchor of anchorsOf(pageText(file))) assert.isTrue(known.get(name)!.has(anchor), `${name}#${anchor}`)
    }
    let links = 0
    for (const [name, text] of texts) {
      for (const [, href = ""] of text.matchAll(/<a href="([^"]+)"/g)) {
        if (/^[a-z]+:/.test(href) || href.endsWith(".md")) continue
        const [place = "", anchor] = decodeURI(href).split("#", 2)
        const to = place === "" ? name : path.posix.join(path.posix.dirname(name), place)
        if (to === "." || to === "./") continue
        assert.isTrue(known.has(to), `${name}: ${href}`)
        if (anchor !== undefined) assert.isTrue(known.get(to)!.has(anchor), `${name}: ${href}`)
        links++
      }
    }
    assert.isAbove(links, 300)
  })

  it("begins with the pages by task, relative to any prefix", async () => {
    const { headers, status } = await read("/help")
    assert.deepEqual([status, headers.get("location")], [308, "help/"])
    const { text } = await read("/help/")
    assert.include(text, "<title>Documents</title>")
    assert.include(text, "<a href=\"start/quickstart\">")
    assert.notMatch(text, /(?:href|src|action)="\//)
  })

  it("loads nothing from other hosts, and runs no script", async () => {
    for (const place of ["/help/", "/help/start/concepts", "/help/?q=key"]) {
      const { headers, text } = await read(place)
      assert.match(headers.get("content-security-policy") ?? "", /^default-src 'self'.*frame-ancestors 'none'$/)
      assert.notMatch(text, /<script|<style| style=| on\w+=|(?:src|<link [^>]*href)="https?:/)
    }
    assert.strictEqual((await read("/help/style.css")).type, "text/css; charset=utf-8")
  })

  it("finds pages and headings by words of their titles", async () => {
    const { text } = await read("/help/?q=Account+pool")
    assert.include(text, "<a href=\"guides/account-pool\">A pool of accounts</a>")
    assert.include((await read("/help/?q=workers+metrics")).text, "No title contains this.")
    assert.notInclude((await read(`/help/?q=${encodeURIComponent("<script>")}`)).text, "<script>")
  })

  it("has an address for each row about a setting or an error, to which the console links", async () => {
    assert.include((await read("/help/reference/configuration")).text, "<tr id=\"runtime.sticky\">")
    const { text } = await read("/help/reference/errors")
    for (const code of Object.keys(errorTable)) assert.include(text, `<tr id="${code}">`)
  })

  it("answers 404 to what is no page", async () => {
    for (const place of ["/help/none", "/help/../package.json", "/help/%E0%A4%A", "/help/start/"]) {
      assert.strictEqual((await read(place)).status, 404, place)
    }
  })

  it("is answered with 304 while the client's copy is the same", async () => {
    const first = await fetch(`${gateway.url}/help/start/concepts`)
    const etag = first.headers.get("etag") ?? ""
    await first.text()
    const { status } = await fetch(`${gateway.url}/help/start/concepts`, { headers: { "if-none-match": etag } })
    assert.strictEqual(status, 304)
  })
})

describe("/llms.txt", () => {
  it("lists every page by its Markdown", async () => {
    const { text, type } = await read("/llms.txt")
    assert.strictEqual(type, "text/plain; charset=utf-8")
    for (const name of names()) assert.include(text, `](help/${name}.md)`)
  })
})

describe("the HTML of a page", () => {
  const html = (text: string) => renderMarkdown(text, { link: (target) => target.replace(".md", "") })

  it("has the elements of its Markdown", () => {
    const cases: ReadonlyArray<readonly [string, string]> = [
      ["# A `b` & c", "<h1 id=\"a-b--c\">A <code>b</code> &amp; c</h1>"],
      ["one *two*\n**three** [x](y.md#z)", "<p>one <em>two</em>\n<strong>three</strong> <a href=\"y#z\">x</a></p>"],
      ["```sh\na <b>\n```", "<pre><code>a &lt;b&gt;\n</code></pre>"],
      ["a\n\n    b\n\n    c\n", "<p>a</p>\n<pre><code>b\n\nc\n</code></pre>"],
      ["- a\n  b\n- c", "<ul>\n<li>a\nb</li>\n<li>c</li>\n</ul>"],
      ["- a\n  - b\n- c", "<ul>\n<li>a<ul>\n<li>b</li>\n</ul>\n</li>\n<li>c</li>\n</ul>"],
      ["3. a", "<ol start=\"3\">\n<li>a</li>\n</ol>"],
      [
        "| a | b |\n| --- | --- |\n| `c.d` | `e \\| f` |",
        "<div class=\"table\"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr id=\"c.d\"><td><code>c.d</code></td><td><code>e | f</code></td></tr></tbody></table></div>"
      ],
      ["<!-- made by x -->\n`**a**` [`b`](c.md)", "<p><code>**a**</code> <a href=\"c\"><code>b</code></a></p>"]
    ]
    for (const [text, expected] of cases) assert.strictEqual(html(text).trim(), expected)
  })

  it("is refused where the Markdown is not known", () => {
    for (const text of ["> quoted", "~~gone~~", "**open", "[a](b c)", "a <b>c</b>", "---"]) {
      assert.throws(() => html(text), /is not known/)
    }
  })
})
