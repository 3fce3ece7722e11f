import { launch } from "./browser.mjs";
import { startMock } from "./mock/server.mjs";
const b = await launch(); const m = await startMock("states");
for (const [w,h,frag,n] of [[1440,700,"","a"],[375,700,"","b"],[1000,800,"#servers/github","c"]]) {
  const p = await (await b.newContext({viewport:{width:w,height:h}})).newPage();
  await p.goto(m.url+frag); await p.waitForTimeout(900); await p.screenshot({path:`/tmp/shot-${n}.png`});
}
await b.close(); await m.close();
