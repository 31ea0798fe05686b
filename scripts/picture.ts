// Makes the README's picture of the console: `node scripts/picture.ts [FILE]`. It shows the overview with the fixed data of the
// pictures that the tests compare.
import path from "node:path"
import { startGateway } from "../test/support/gateway.ts"
import { now } from "../test/web/pictures/data.ts"
import { startFixed } from "../test/web/pictures/server.ts"
import { launch, settled } from "../test/web/support.ts"
import { buildConsole, cachedConsole } from "./console.ts"

const file = process.argv[2] ?? path.join(import.meta.dirname, "../docs/images/console.png")

await buildConsole(cachedConsole)
const gateway = await startGateway()
const fixed = await startFixed(gateway.url)
const browser = await launch()
const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: "light", locale: "en-GB" })
await page.clock.setFixedTime(now)
await page.goto(`${fixed.url}/console/#/overview`)
await page.getByRole("region", { name: "Needs attention" }).getByRole("link").first().waitFor()
await settled(page)
await page.screenshot({ path: file, animations: "disabled" })
await browser.close()
fixed.stop()
await gateway.stop()
process.exit()
