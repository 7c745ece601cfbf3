import onnx
import onnxruntime as ort

model = onnx.load("digits.onnx")
model.producer_name, model.producer_version, model.domain, model.model_version = "trainer", "1.5", "org.example", 7
model.doc_string = "reads digits"
model.graph.doc_string = "three layers"
onnx.helper.set_model_props(model, {"classes": "0,1,2,3,4,5,6,7,8,9", "stride": "32"})
onnx.save(model, "described.onnx")

meta = ort.InferenceSession("described.onnx").get_modelmeta()
assert meta.producer_name == "trainer"
assert meta.graph_name == model.graph.name
assert meta.domain == "org.example"
assert meta.version == 7
assert meta.description == "reads digits"
assert meta.graph_description == "three layers"
assert meta.custom_metadata_map["stride"] == "32"
names = meta.custom_metadata_map["classes"].split(",")
assert len(names) == 10
