/**
 * Finds or brings the Chromium that the components' tests run in.
 */
import { executable } from "../chromium.ts"

export default async (): Promise<void> => {
  process.env["CHROME_PATH"] = await executable()
}
