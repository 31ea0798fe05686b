// Makes the README's picture of the console: `node scripts/picture.ts [FILE]`. It shows the overview of the gateway of the
// pictures that the tests compare.
import path from "node:path"
import { startFixed } from "../test/web/pictures/server.ts"
import { now, startWorld } from "../test/web/pictures/world.ts"
import { launch, settled } from "../test/web/support.ts"
import { buildConsole, cachedConsole } from "./console.ts"

const file = process.argv[2] ?? path.join(import.meta.dirname, "../docs/images/console.png")

await buildConsole(cachedConsole)
const world = await startWorld()
const fixed = await startFixed(world)
const browser = await launch()
const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: "light", locale: "en-GB" })
await page.clock.setFixedTime(now)
await page.goto(`${fixed.url}/console/#/overview`)
await page.getByRole("region", { name: "Needs attention" }).getByRole("link").first().waitFor()
await settled(page)
await page.screenshot({ path: file, animations: "disabled" })
await browser.close()
fixed.stop()
await world.stop()
process.exit()
