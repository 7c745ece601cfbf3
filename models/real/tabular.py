"""Models of tables: scikit-learn through skl2onnx, LightGBM through onnxmltools; trained on small drawn data."""

import numpy as np
import sklearn.cluster
import sklearn.compose
import sklearn.datasets
import sklearn.decomposition
import sklearn.discriminant_analysis
import sklearn.ensemble
import sklearn.feature_extraction.text
import sklearn.gaussian_process
import sklearn.impute
import sklearn.linear_model
import sklearn.naive_bayes
import sklearn.neighbors
import sklearn.neural_network
import sklearn.pipeline
import sklearn.preprocessing
import sklearn.svm
import sklearn.tree
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType

import case

N = 12
PLAIN = {"zipmap": False}


def data():
    return sklearn.datasets.make_classification(300, N, n_informative=8, n_classes=3, random_state=0)


def classifiers():
    s = sklearn
    return {
        "logistic": s.linear_model.LogisticRegression(),
        "logistic-zipmap": s.linear_model.LogisticRegression(),
        "sgd": s.linear_model.SGDClassifier(loss="log_loss", random_state=0),
        "ridge-classifier": s.linear_model.RidgeClassifier(),
        "perceptron": s.linear_model.Perceptron(),
        "tree": s.tree.DecisionTreeClassifier(max_depth=6, random_state=0),
        "forest": s.ensemble.RandomForestClassifier(n_estimators=100, random_state=0),
        "forest-1000": s.ensemble.RandomForestClassifier(n_estimators=1000, max_depth=8, random_state=0),
        "extra-trees": s.ensemble.ExtraTreesClassifier(n_estimators=50, random_state=0),
        "extra-trees-1000": s.ensemble.ExtraTreesClassifier(n_estimators=1000, random_state=0),
        "gradient-boosting": s.ensemble.GradientBoostingClassifier(random_state=0),
        "gradient-boosting-1000": s.ensemble.GradientBoostingClassifier(n_estimators=333, random_state=0),  # trees of each class
        "hist-gradient-boosting": s.ensemble.HistGradientBoostingClassifier(max_iter=30, random_state=0),
        "adaboost": s.ensemble.AdaBoostClassifier(random_state=0),
        "bagging": s.ensemble.BaggingClassifier(random_state=0),
        "voting": s.ensemble.VotingClassifier(
            [("a", s.linear_model.LogisticRegression()), ("b", s.naive_bayes.GaussianNB())],
            voting="soft",
            flatten_transform=False,
        ),
        "stacking": s.ensemble.StackingClassifier(
            [("a", s.tree.DecisionTreeClassifier(max_depth=3)), ("b", s.naive_bayes.GaussianNB())]
        ),
        "svc": s.svm.SVC(probability=True, random_state=0),
        "svc-linear": s.svm.LinearSVC(),
        "nu-svc": s.svm.NuSVC(nu=0.3, kernel="poly"),
        "svc-votes": s.svm.SVC(kernel="sigmoid"),
        "gaussian-nb": s.naive_bayes.GaussianNB(),
        "bernoulli-nb": s.naive_bayes.BernoulliNB(),
        "knn": s.neighbors.KNeighborsClassifier(),
        "mlp": s.neural_network.MLPClassifier(hidden_layer_sizes=(20,), max_iter=50, random_state=0),
        "lda": s.discriminant_analysis.LinearDiscriminantAnalysis(),
        "qda": s.discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1),
    }


def regressors():
    s = sklearn
    return {
        "linear": s.linear_model.LinearRegression(),
        "ridge": s.linear_model.Ridge(),
        "lasso": s.linear_model.Lasso(alpha=0.01),
        "poisson": s.linear_model.PoissonRegressor(),
        "forest-regressor": s.ensemble.RandomForestRegressor(n_estimators=60, random_state=0),
        "hist-regressor": s.ensemble.HistGradientBoostingRegressor(max_iter=30, random_state=0),
        "svr": s.svm.SVR(),
        "nu-svr": s.svm.NuSVR(),
        "knn-regressor": s.neighbors.KNeighborsRegressor(),
        "mlp-regressor": s.neural_network.MLPRegressor(hidden_layer_sizes=(20,), max_iter=50, random_state=0),
        "gaussian-process": s.gaussian_process.GaussianProcessRegressor(),
    }


def others():
    s = sklearn
    p = s.preprocessing
    return {
        "scaler-pca": s.pipeline.make_pipeline(p.StandardScaler(), s.decomposition.PCA(n_components=5)),
        "kmeans": s.cluster.KMeans(n_clusters=4, random_state=0, n_init=1),
        "isolation-forest": s.ensemble.IsolationForest(n_estimators=50, random_state=0),
        "one-class-svm": s.svm.OneClassSVM(),
        "normalizer": p.Normalizer(),
        "binarizer": p.Binarizer(),
        "minmax": p.MinMaxScaler(),
        "robust": p.RobustScaler(),
        "polynomial": p.PolynomialFeatures(degree=2),
        "kbins": p.KBinsDiscretizer(n_bins=4, encode="ordinal"),
        "power": p.PowerTransformer(),
        "imputer": s.impute.SimpleImputer(),
        "lof": s.neighbors.LocalOutlierFactor(novelty=True),
        "svd": s.decomposition.TruncatedSVD(n_components=4),
        "quantile": p.QuantileTransformer(n_quantiles=20),
    }


def feeds(x):
    return [{"X": x[:n].astype(np.float32)} for n in (1, 7, 100)]


def collect_trained(out, wanted):
    x, y = data()
    for kind, models in (("classifier", classifiers()), ("regressor", regressors()), ("other", others())):
        for i, (name, model) in enumerate(models.items()):
            if not wanted(name):
                continue
            options = {id(model): PLAIN} if kind == "classifier" and "zipmap" not in name and "svc-linear" != name else None
            model.fit(np.abs(x) if "poisson" in name else x, y) if kind != "other" else model.fit(x)
            try:
                made = to_onnx(
                    model,
                    x[:1].astype(np.float32),
                    options=options,
                    target_opset={"": 11 + i % 10, "ai.onnx.ml": 1 if i % 2 and "hist" not in name else 3},
                )
            except Exception as error:
                print("%-44s cannot be exported: %s" % (name, str(error).replace("\n", " ")[:160]), flush=True)
                continue
            case.write(out, "tabular-" + name, made.SerializeToString(), feeds(x))


def collect_lightgbm(out, wanted):
    import lightgbm
    import onnxmltools
    from onnxmltools.convert.common.data_types import FloatTensorType as Floats

    x, y = data()
    for name, model in (
        ("lightgbm-classifier", lightgbm.LGBMClassifier(n_estimators=60, verbose=-1)),
        ("lightgbm-1000", lightgbm.LGBMClassifier(n_estimators=333, verbose=-1)),
        ("lightgbm-regressor", lightgbm.LGBMRegressor(n_estimators=200, verbose=-1)),
        ("lightgbm-binary", lightgbm.LGBMClassifier(n_estimators=60, verbose=-1)),
    ):
        if wanted(name):
            model.fit(x, (y > 0).astype(int) if "binary" in name else y)
            made = onnxmltools.convert_lightgbm(model, initial_types=[("X", Floats([None, N]))], target_opset=15, zipmap=False)
            case.write(out, "tabular-" + name, made.SerializeToString(), feeds(x))


def collect_words(out, wanted):
    """Columns of strings and of numbers; texts."""
    s, draw = sklearn, np.random.default_rng(0)
    x, y = data()
    words = np.array(["red", "green", "blue", "grey"])[draw.integers(0, 4, (300, 2))]
    numbers = draw.integers(0, 5, (300, 2))
    columns = s.compose.ColumnTransformer(
        [("n", s.preprocessing.StandardScaler(), [0]), ("w", s.preprocessing.OneHotEncoder(), [1])]
    )
    import pandas

    frame = pandas.DataFrame({"n": x[:, 0].astype(np.float32), "w": words[:, 0]})
    pipeline = s.pipeline.make_pipeline(columns, s.linear_model.LogisticRegression())
    texts = np.array([" ".join(draw.choice(["one", "two", "three", "four", "five"], 6)) for _ in range(300)])
    rows = [
        (
            "one-hot-strings",
            s.preprocessing.OneHotEncoder(handle_unknown="ignore").fit(words),
            [("X", StringTensorType([None, 2]))],
            lambda n: {"X": words[:n].astype(object)},
        ),
        (
            "one-hot-numbers",
            s.preprocessing.OneHotEncoder().fit(numbers),
            [("X", Int64TensorType([None, 2]))],
            lambda n: {"X": numbers[:n].astype(np.int64)},
        ),
        (
            "ordinal-strings",
            s.preprocessing.OrdinalEncoder().fit(words),
            [("X", StringTensorType([None, 2]))],
            lambda n: {"X": words[:n].astype(object)},
        ),
        (
            "columns-logistic",
            pipeline.fit(frame, y),
            [("n", FloatTensorType([None, 1])), ("w", StringTensorType([None, 1]))],
            lambda n: {"n": frame[["n"]].values[:n].astype(np.float32), "w": words[:n, :1].astype(object)},
        ),
        (
            "tfidf-logistic",
            s.pipeline.make_pipeline(s.feature_extraction.text.TfidfVectorizer(), s.linear_model.LogisticRegression()).fit(
                texts, y
            ),
            [("X", StringTensorType([None]))],
            lambda n: {"X": texts[:n].astype(object)},
        ),
        (
            "logistic-string-labels",
            s.linear_model.LogisticRegression().fit(x, words[:, 0]),
            [("X", FloatTensorType([None, N]))],
            lambda n: {"X": x[:n].astype(np.float32)},
        ),
        (
            "forest-string-labels",
            s.ensemble.RandomForestClassifier(n_estimators=10).fit(x, words[:, 0]),
            [("X", FloatTensorType([None, N]))],
            lambda n: {"X": x[:n].astype(np.float32)},
        ),
    ]
    for name, model, types, feed in rows:
        if wanted(name):
            options = {id(model): PLAIN} if hasattr(model, "predict_proba") else None
            made = to_onnx(model, initial_types=types, options=options, target_opset={"": 17, "ai.onnx.ml": 3})
            case.write(out, "tabular-" + name, made.SerializeToString(), [feed(n) for n in (1, 7, 60)])


def collect(out, wanted, _cache):
    collect_trained(out, wanted)
    collect_lightgbm(out, wanted)
    collect_words(out, wanted)
