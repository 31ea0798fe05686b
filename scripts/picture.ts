// Makes the README's picture of the console: `node scripts/picture.ts [FILE]`. It starts a gateway on the built-in upstream, runs some
// requests, and takes a screenshot of the overview page.
import path from "node:path"
import { businessKey, startGateway } from "../test/support/gateway.ts"
import { launch, openSignedIn } from "../test/web/support.ts"
import { buildConsole, cachedConsole } from "./console.ts"

const file = process.argv[2] ?? path.join(import.meta.dirname, "../docs/images/console.png")

await buildConsole(cachedConsole)
const gateway = await startGateway({
  runtime: { account_max_inflight: 3 },
  accounts: ["ada", "grace", "edsger", "barbara"].map((name) => ({
    email: `${name}@example.com`,
    password: "password"
  }))
})
const browser = await launch()
const ending = new AbortController()
const ask = (content: string, account?: string): void => {
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    signal: ending.signal,
    headers: {
      authorization: `Bearer ${businessKey}`,
      ...(account === undefined ? {} : { "x-gateway-target-account": account })
    },
    body: JSON.stringify({ model: "upstream-chat", stream: true, messages: [{ role: "user", content }] })
  }).then((response) => response.text()).catch(() => undefined)
}
for (let i = 0; i < 9; i++) ask("!pace 50ms\n!count 4000")
const { close, page } = await openSignedIn(browser, gateway.url, "overview", {
  viewport: { width: 1120, height: 660 },
  colorScheme: "light"
})
for (let i = 0; i < 2; i++) ask("!pace 50ms\n!count 4000", "ada@example.com")
await page.getByRole("region", { name: "Pool" }).getByRole("group", { name: "Accounts" }).getByRole("link").nth(3)
  .waitFor()
await page.getByRole("table", { name: "Queue" }).getByText("chat").first().waitFor()
await page.screenshot({ path: file })
ending.abort()
await close()
await browser.close()
await gateway.stop()
process.exit()
