// The search of the documentation site where that is read as files: there a browser starts no worker, so its script runs
// in a hidden frame, with the same messages.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      const send = (to, data) => to.dispatchEvent(new MessageEvent("message", { data }));
      inside.postMessage = (data) => send(this, data);
      const script = inside.document.createElement("script");
      script.src = new URL(url, document.baseURI).href;
      this.ready = new Promise((done) => script.addEventListener("load", done));
      this.postMessage = (data) => this.ready.then(() => send(inside, data));
      inside.document.body.append(script);
    }
  };
}
